"""How a home is set up and kept alive; what each command does is in `soul/commands/`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json

config = typer.Typer(help="Its settings: what they are, what they mean, and how to change them.", cls=Group)
service = typer.Typer(help="Let systemd or launchd keep it alive.", cls=Group)


@config.command("get", cls=ListedCommand)
def config_get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which; left out, all are listed.")] = "",
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """What a setting is, its default, and what it means; secrets stay hidden."""
    from soul.commands.config import run_config_get  # noqa: PLC0415 - only this command needs it

    run_config_get(home, name, as_json=json)


@config.command("set", cls=ListedCommand)
def config_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which.")],
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="Its value, '' for the default; left out, you are asked for it."),
    ] = None,
    *,
    home: Home = Path(),
) -> None:
    """Change a setting, if `soul run` would accept it."""
    from soul.commands.config import run_config_set  # noqa: PLC0415 - only this command needs it

    run_config_set(home, name, value)


@config.command("edit", cls=ListedCommand)
def config_edit(*, home: Home = Path()) -> None:
    """Change them in your editor; what `soul run` would refuse is not taken."""
    from soul.commands.config import run_config_edit  # noqa: PLC0415 - only this command needs it

    run_config_edit(home)


@service.command("install", cls=ListedCommand)
def service_install(*, home: Home = Path()) -> None:
    """Write a service for your user, which systemd or launchd starts again after a failure; it holds no secret."""
    from soul.commands.service import run_service_install  # noqa: PLC0415 - only this command needs it

    run_service_install(home)


@service.command("start", cls=ListedCommand)
def service_start(*, home: Home = Path()) -> None:
    """Let it live."""
    from soul.commands.service import run_service_start  # noqa: PLC0415 - only this command needs it

    run_service_start(home)


@service.command("stop", cls=ListedCommand)
def service_stop(*, home: Home = Path()) -> None:
    """Stop it, until it is started again or you log in anew."""
    from soul.commands.service import run_service_stop  # noqa: PLC0415 - only this command needs it

    run_service_stop(home)


@service.command("status", cls=ListedCommand)
def service_status(*, home: Home = Path()) -> None:
    """What the supervisor knows of it; `soul status` tells how the SOUL is."""
    from soul.commands.service import run_service_status  # noqa: PLC0415 - only this command needs it

    run_service_status(home)


@service.command("logs", cls=ListedCommand)
def service_logs(*, home: Home = Path()) -> None:
    """The last lines that the supervisor kept, also of a start that failed; `soul logs` has more."""
    from soul.commands.service import run_service_logs  # noqa: PLC0415 - only this command needs it

    run_service_logs(home)


@service.command("alarm", cls=ListedCommand)
def service_alarm(*, home: Home = Path()) -> None:
    """Tell you at ALARM_URL that it is not started again; systemd calls this where it gives up."""
    from soul.commands.service import run_service_alarm  # noqa: PLC0415 - only this command needs it

    run_service_alarm(home)
