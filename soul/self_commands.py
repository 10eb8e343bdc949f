"""The commands of `soul self`; what each does is in `soul/commands/self_.py`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json

own = typer.Typer(help="Show how SELF.md changed; undo, approve or reject a change.", cls=Group)


@own.command("log", cls=ListedCommand)
def self_log(*, home: Home = Path(), json: Json = False) -> None:
    """List the versions of SELF.md, newest first."""
    from soul.commands.self_ import run_self_log  # noqa: PLC0415 - only this command needs it

    run_self_log(home, as_json=json)


@own.command("diff", cls=ListedCommand)
def self_diff(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Since this version; else the last one.")] = "",
    *,
    home: Home = Path(),
) -> None:
    """Show what changed since a version."""
    from soul.commands.self_ import run_self_diff  # noqa: PLC0415 - only this command needs it

    run_self_diff(home, version)


@own.command("show", cls=ListedCommand)
def self_show(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="The version.")], *, home: Home = Path()
) -> None:
    """Show one version, its reason, and the experiences behind it."""
    from soul.commands.self_ import run_self_show  # noqa: PLC0415 - only this command needs it

    run_self_show(home, version)


@own.command("check", cls=ListedCommand)
def self_check(*, home: Home = Path()) -> None:
    """Show how the program reads SELF.md, and what it does not understand."""
    from soul.commands.self_ import run_self_check  # noqa: PLC0415 - only this command needs it

    if not run_self_check(home):
        raise typer.Exit(1)


@own.command("rollback", cls=ListedCommand)
def self_rollback(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="The version.")], *, home: Home = Path()
) -> None:
    """Restore a version of SELF.md."""
    from soul.commands.self_ import run_self_rollback  # noqa: PLC0415 - only this command needs it

    run_self_rollback(home, version)


@own.command("held", cls=ListedCommand)
def self_held(*, home: Home = Path(), json: Json = False) -> None:
    """Show the change that waits for your approval."""
    from soul.commands.self_ import run_self_held  # noqa: PLC0415 - only this command needs it

    run_self_held(home, as_json=json)


@own.command("approve", cls=ListedCommand)
def self_approve(*, home: Home = Path()) -> None:
    """Approve that change."""
    from soul.commands.self_ import run_self_decide  # noqa: PLC0415 - only this command needs it

    run_self_decide(home, approve=True)


@own.command("reject", cls=ListedCommand)
def self_reject(*, home: Home = Path()) -> None:
    """Reject that change."""
    from soul.commands.self_ import run_self_decide  # noqa: PLC0415 - only this command needs it

    run_self_decide(home, approve=False)
