"""The commands of `soul memory`; what each does is in `soul/commands/memory.py`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json, Kinds

remembered = typer.Typer(help="List, search, export or import what the SOUL remembers.", cls=Group)


@remembered.command("list", cls=ListedCommand)
def memory_list(
    *,
    kind: Kinds = None,
    since: Annotated[str, typer.Option("--since", help="Only from this day on, as 2026-01-31.")] = "",
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1)] = 50,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """List memories, newest first."""
    from soul.commands.memory import run_memory_list  # noqa: PLC0415 - only this command needs it

    run_memory_list(home, kinds=[one.value for one in kind or ()], since=since, limit=limit, as_json=json)


@remembered.command("search", cls=ListedCommand)
def memory_search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="The words to search for.")],
    *,
    kind: Kinds = None,
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1, max=20)] = 8,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Find memories by words, best match first."""
    from soul.commands.memory import run_memory_search  # noqa: PLC0415 - only this command needs it

    run_memory_search(home, " ".join(words), kinds=[one.value for one in kind or ()], limit=limit, as_json=json)


@remembered.command("show", cls=ListedCommand)
def memory_show(
    memory_id: Annotated[int, typer.Argument(metavar="ID", help="The number of the memory.")],
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show one memory, and every earlier text about its subject."""
    from soul.commands.memory import run_memory_show  # noqa: PLC0415 - only this command needs it

    run_memory_show(home, memory_id, as_json=json)


@remembered.command("export", cls=ListedCommand)
def memory_export(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A new file; without it, the terminal.")] = None,
    *,
    home: Home = Path(),
) -> None:
    """Write all memories and profiles as JSON lines."""
    from soul.commands.memory import run_memory_export  # noqa: PLC0415 - only this command needs it

    run_memory_export(home, file)


@remembered.command("import", cls=ListedCommand)
def memory_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `export` wrote; - for standard input.")],
    *,
    home: Home = Path(),
) -> None:
    """Read an export: all of it or nothing, and each line once."""
    from soul.commands.memory import run_memory_import  # noqa: PLC0415 - only this command needs it

    run_memory_import(home, file)
