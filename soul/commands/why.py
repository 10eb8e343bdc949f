"""`soul why`: tells the story of one post, act or silence, whether the SOUL is awake or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from modules.runtime.database.file import reading
from modules.services.explanation import why
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_answer


def run_why(
    root: Path,
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="A link, an at:// address, owner/repo#12[/task-3], or a draft's number."),
    ],
    *,
    as_json: bool,
) -> None:
    """Print the story of `what`. Raises `SoulError`, with a one-line message, if there is none."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        story = why.story_of(connection, what)
    write_answer(why.as_json(story), why.lines(story, settings.soul_timezone), as_json=as_json)
