"""The commands of `soul self`; what each does is in `soul/commands/self_.py`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json

own = typer.Typer(help="How SELF.md changed, and your word on it.", cls=Group)


@own.command("log", cls=ListedCommand)
def self_log(*, home: Home = Path(), json: Json = False) -> None:
    """Every version that is kept, newest first."""
    from soul.commands.self_ import run_self_log  # noqa: PLC0415 - only this command needs it

    run_self_log(home, as_json=json)


@own.command("diff", cls=ListedCommand)
def self_diff(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Since which version; else the last one.")] = "",
    *,
    home: Home = Path(),
) -> None:
    """What changed."""
    from soul.commands.self_ import run_self_diff  # noqa: PLC0415 - only this command needs it

    run_self_diff(home, version)


@own.command("show", cls=ListedCommand)
def self_show(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Which version.")], *, home: Home = Path()
) -> None:
    """One version, with its reason and what it grew from."""
    from soul.commands.self_ import run_self_show  # noqa: PLC0415 - only this command needs it

    run_self_show(home, version)


@own.command("check", cls=ListedCommand)
def self_check(*, home: Home = Path()) -> None:
    """What is read in SELF.md, and what is not understood."""
    from soul.commands.self_ import run_self_check  # noqa: PLC0415 - only this command needs it

    if not run_self_check(home):
        raise typer.Exit(1)


@own.command("rollback", cls=ListedCommand)
def self_rollback(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Which version.")], *, home: Home = Path()
) -> None:
    """Make SELF.md what it was."""
    from soul.commands.self_ import run_self_rollback  # noqa: PLC0415 - only this command needs it

    run_self_rollback(home, version)


@own.command("held", cls=ListedCommand)
def self_held(*, home: Home = Path(), json: Json = False) -> None:
    """The change that waits for you."""
    from soul.commands.self_ import run_self_held  # noqa: PLC0415 - only this command needs it

    run_self_held(home, as_json=json)


@own.command("approve", cls=ListedCommand)
def self_approve(*, home: Home = Path()) -> None:
    """Let that change happen."""
    from soul.commands.self_ import run_self_decide  # noqa: PLC0415 - only this command needs it

    run_self_decide(home, approve=True)


@own.command("reject", cls=ListedCommand)
def self_reject(*, home: Home = Path()) -> None:
    """Give that change up."""
    from soul.commands.self_ import run_self_decide  # noqa: PLC0415 - only this command needs it

    run_self_decide(home, approve=False)
