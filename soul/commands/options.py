"""The arguments and options that several commands share."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class DraftAction(StrEnum):
    """The actions of `soul drafts`."""

    LIST = "list"
    SHOW = "show"
    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"


class TalkAction(StrEnum):
    """The actions of `soul talks`."""

    LIST = "list"
    SHOW = "show"


class DemoMind(StrEnum):
    """The mind of the SOULs in the demo, for `--mind`."""

    SCRIPTED = "scripted"
    GATEWAY = "gateway"


class MemoryKind(StrEnum):
    """The kinds of memory, for `--kind`."""

    FACT = "fact"
    PREFERENCE = "preference"
    PERSON = "person"
    LESSON = "lesson"
    PROTOCOL = "protocol"
    DECISION = "decision"
    EPISODE = "episode"
    CURATED = "curated"
    DAILY = "daily"


def expanded(folder: Path) -> Path:
    """Return the folder with `~` expanded, which no shell does in `--home=~/rowan`. Raises `BadParameter`."""
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise typer.BadParameter(f"{folder}: there is no such user") from error


DraftIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Drafts: their numbers, or the first 4 characters of their ids."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")]
Muted = Annotated[
    str, typer.Argument(metavar="WHO", help="The DID or handle of an account; without it, muted accounts are listed.")
]
Kinds = Annotated[
    list[MemoryKind] | None,
    typer.Option("--kind", metavar="KIND", help=f"One of {', '.join(MemoryKind)}; may be repeated."),
]
Home = Annotated[
    Path,
    typer.Option("--home", callback=expanded, help="The folder of the SOUL (.env, SOUL.md, SELF.md, .memory)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Loops = Annotated[bool, typer.Option("--loops", help="Also show its loops and all else that is known.")]
SocialOnly = Annotated[bool, typer.Option("--social-only", help="Leave out GitHub and code; it still learns skills.")]
Who = Annotated[str, typer.Argument(metavar="WHO", help="The DID or handle of an account.")]
Runs = Annotated[int, typer.Option("--limit", min=1, max=30, help="How many runs of each ritual.")]
USUAL: Mapping[str, tuple[object, object]] = {
    "with_loops": (Loops, False),
    "root": (Home, Path()),
    "as_json": (Json, False),
}
"""Parameters of commands that need no annotation of their own; help shows them last, in this order."""
