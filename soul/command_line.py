"""The command line. The module of a command is imported only when the command is called or its help is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from common.version import __version__
from soul.command_table import COMMANDS
from soul.commands.help import Group, commands_of
from soul.commands.options import Home, SocialOnly
from soul.loading import loading
from soul.terminal.output import write_lines


class Program(Group):
    """The command `soul` itself, with all its subcommands."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as Typer gives them
        super().__init__(**attributes | {"commands": commands_of(COMMANDS)})


app = typer.Typer(
    name="soul",
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False
) -> None:
    """Run a SOUL, an autonomous agent on Bluesky, on GitHub and in a chatroom, and look after it.

    Every command works while the SOUL runs, except init, run, up, walk, restore, move, upgrade and bluesky-reset.
    """
    if version:
        write_lines(f"soul {__version__}")
        raise typer.Exit


def run(
    root: Home = Path(),
    *,
    social_only: SocialOnly = False,
    flush_all: Annotated[
        bool, typer.Option("--flush-all", help="First delete all under .memory: memories, history and copies.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Permanently stop the other copy of this home, and run this one.")
    ] = False,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="First upgrade a home of an earlier version, as `soul upgrade` does.")
    ] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Also serve the dashboard.")] = False,
) -> int:
    """Run the SOUL and, with `dashboard`, serve its page; return the exit code."""
    with loading():
        from soul.commands.run import run_life  # noqa: PLC0415 - only this command needs it

    if upgrade:
        from soul.commands.upgrade import is_earlier, run_upgrade  # noqa: PLC0415 - only this option needs it

        if is_earlier(root):
            run_upgrade(root)

    page = None
    if dashboard:
        from soul.dashboard.serving import serving_dashboard  # noqa: PLC0415 - only this option needs it

        page = serving_dashboard
    return run_life(root, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)


def help_(command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="The command.")] = None) -> int:
    """Show all commands, or the arguments and options of one; return the exit code."""
    return int(app([*(command or ()), "--help"], prog_name="soul", standalone_mode=False) or 0)
