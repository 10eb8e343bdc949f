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
    typer.Option("--passphrase-file", metavar="FILE", help="A file whose first line seals or opens the backup."),
]
Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@daily.command(cls=ListedCommand)
def today(
    *,
    date: Annotated[str, typer.Option("--date", metavar="DAY", help="A day as 2026-01-31; else today.")] = "",
    home: Home = Path(),
    json: Json = False,
) -> None:
    """One day on one screen: what it said and left alone, what waits, what it learned and spent; also while it runs."""
    from soul.commands.today import run_today  # noqa: PLC0415 - only this command needs it

    run_today(home, date, as_json=json)


@daily.command(cls=ListedCommand)
def budget(
    *,
    days: Annotated[int, typer.Option(help="How many days to look back.", min=1, max=90)] = 7,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """What thinking has cost, and what is left of today."""
    from soul.commands.budget import run_budget  # noqa: PLC0415 - only this command needs it

    run_budget(home, as_json=json, days=days)


@daily.command(cls=ListedCommand)
def logs(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with each new line, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="So many of the last.")] = 40,
    home: Home = Path(),
) -> None:
    """What it told in its terminal; also while it runs."""
    from soul.commands.logs import run_logs  # noqa: PLC0415 - only this command needs it

    run_logs(home, most=lines, follow=follow)


@daily.command(cls=ListedCommand)
def mcp(
    *,
    allow_acts: Annotated[
        bool, typer.Option("--allow-acts", help="Let them approve and reject drafts in your name.")
    ] = False,
    home: Home = Path(),
) -> None:
    """Let your other tools ask about it, by the Model Context Protocol over standard input; also while it runs."""
    from soul.commands.mcp import run_mcp  # noqa: PLC0415 - only this command needs it

    run_mcp(home, allow_acts=allow_acts)


@daily.command(cls=ListedCommand)
def report(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Where to; without one, the terminal.")] = None,
    *,
    home: Home = Path(),
) -> None:
    """What helps to find a fault, safe to paste in public; checks all that `doctor` checks; also while it runs."""
    from soul.commands.report import run_report  # noqa: PLC0415 - only this command needs it

    run_report(home, file)


@daily.command(cls=ListedCommand)
def backup(file: Backup, *, passphrase: Passphrase = None, home: Home = Path()) -> None:
    """Write the home into one file; also while it runs."""
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
    """Bring a home back from such a file, in a folder where nobody lives."""
    from soul.commands.backup import run_restore  # noqa: PLC0415 - only this command needs it

    run_restore(home, file, passphrase, most_gib=max_gib)


@daily.command(cls=ListedCommand)
def move(file: Backup, *, passphrase: Passphrase = None, home: Home = Path()) -> None:
    """Write the home into one file and end it here: it wakes only where that is restored."""
    from soul.commands.backup import run_move  # noqa: PLC0415 - only this command needs it

    run_move(home, file, passphrase)


@daily.command(cls=ListedCommand)
def upgrade(*, home: Home = Path()) -> None:
    """Let the installed version take over a home of an earlier one: a copy, a try in it, and only then the change."""
    from soul.commands.upgrade import run_upgrade  # noqa: PLC0415 - only this command needs it

    run_upgrade(home)
