"""What an owner types day by day; what each command does is in `soul/commands/`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import ListedCommand
from soul.commands.options import Home, Json

daily = typer.Typer()

Passphrase = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="A file whose first line is the passphrase of the backup."),
]
Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup file.")]


@daily.command(cls=ListedCommand)
def today(
    *,
    date: Annotated[str, typer.Option("--date", metavar="DAY", help="The day, as 2026-01-31. Default: today.")] = "",
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show one day on one screen: what it said and left alone, what waits, what it learned and spent."""
    from soul.commands.today import run_today  # noqa: PLC0415 - only this command needs it

    run_today(home, date, as_json=json)


@daily.command(cls=ListedCommand)
def budget(
    *,
    days: Annotated[int, typer.Option(help="How many days to look back.", min=1, max=90)] = 7,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show what the model has cost, and what is left of today's limit."""
    from soul.commands.budget import run_budget  # noqa: PLC0415 - only this command needs it

    run_budget(home, as_json=json, days=days)


@daily.command(cls=ListedCommand)
def logs(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines.")] = 40,
    home: Home = Path(),
) -> None:
    """Print the last lines of its terminal."""
    from soul.commands.logs import run_logs  # noqa: PLC0415 - only this command needs it

    run_logs(home, most=lines, follow=follow)


@daily.command(cls=ListedCommand)
def mcp(
    *,
    allow_acts: Annotated[
        bool, typer.Option("--allow-acts", help="Let these tools approve and reject drafts in your name.")
    ] = False,
    home: Home = Path(),
) -> None:
    """Serve other tools (Model Context Protocol, over standard input and output): status, memory, drafts."""
    from soul.commands.mcp import run_mcp  # noqa: PLC0415 - only this command needs it

    run_mcp(home, allow_acts=allow_acts)


@daily.command(cls=ListedCommand)
def report(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A new file; without it, the terminal.")] = None,
    *,
    home: Home = Path(),
) -> None:
    """Collect what a bug report needs, safe to publish: versions, settings, the checks of `doctor`, last errors."""
    from soul.commands.report import run_report  # noqa: PLC0415 - only this command needs it

    run_report(home, file)


@daily.command(cls=ListedCommand)
def backup(file: Backup, *, passphrase: Passphrase = None, home: Home = Path()) -> None:
    """Save the home in one file."""
    from soul.commands.backup import run_backup  # noqa: PLC0415 - only this command needs it

    run_backup(home, file, passphrase)


@daily.command(cls=ListedCommand)
def restore(
    file: Backup,
    *,
    passphrase: Passphrase = None,
    max_gib: Annotated[int, typer.Option("--max-gib", min=1, help="Refuse a backup that holds more.")] = 16,
    home: Home = Path(),
) -> None:
    """Restore a home from a backup, into a folder without a SOUL."""
    from soul.commands.backup import run_restore  # noqa: PLC0415 - only this command needs it

    run_restore(home, file, passphrase, most_gib=max_gib)


@daily.command(cls=ListedCommand)
def move(file: Backup, *, passphrase: Passphrase = None, home: Home = Path()) -> None:
    """Save the home in one file and retire this copy: the SOUL runs only where the file is restored."""
    from soul.commands.backup import run_move  # noqa: PLC0415 - only this command needs it

    run_move(home, file, passphrase)


@daily.command(cls=ListedCommand)
def upgrade(*, home: Home = Path()) -> None:
    """Convert a home of an earlier version for this one, after a trial run in a copy."""
    from soul.commands.upgrade import run_upgrade  # noqa: PLC0415 - only this command needs it

    run_upgrade(home)
