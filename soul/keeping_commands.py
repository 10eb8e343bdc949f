"""How a home is set up and kept alive; what each command does is in `soul/commands/`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json

config = typer.Typer(help="Show and change its settings.", cls=Group)
service = typer.Typer(help="Run the SOUL as a service of systemd or launchd.", cls=Group)


@config.command("get", cls=ListedCommand)
def config_get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The setting; without it, all are listed.")] = "",
    *,
    home: Home = Path(),
    json: Json = False,
) -> None:
    """Show a setting, its default and its meaning. Secrets stay hidden."""
    from soul.commands.config import run_config_get  # noqa: PLC0415 - only this command needs it

    run_config_get(home, name, as_json=json)


@config.command("set", cls=ListedCommand)
def config_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The setting.")],
    value: Annotated[
        str | None,
        typer.Argument(metavar="VALUE", help="The new value; '' restores the default. Without it, you are asked."),
    ] = None,
    *,
    home: Home = Path(),
) -> None:
    """Change a setting, if `soul run` would accept it."""
    from soul.commands.config import run_config_set  # noqa: PLC0415 - only this command needs it

    run_config_set(home, name, value)


@config.command("edit", cls=ListedCommand)
def config_edit(*, home: Home = Path()) -> None:
    """Edit .env in your editor; keep it only if `soul run` would accept it."""
    from soul.commands.config import run_config_edit  # noqa: PLC0415 - only this command needs it

    run_config_edit(home)


@service.command("install", cls=ListedCommand)
def service_install(*, home: Home = Path()) -> None:
    """Install a user service that restarts the SOUL after a failure. It contains no secret."""
    from soul.commands.service import run_service_install  # noqa: PLC0415 - only this command needs it

    run_service_install(home)


@service.command("start", cls=ListedCommand)
def service_start(*, home: Home = Path()) -> None:
    """Start the service."""
    from soul.commands.service import run_service_start  # noqa: PLC0415 - only this command needs it

    run_service_start(home)


@service.command("stop", cls=ListedCommand)
def service_stop(*, home: Home = Path()) -> None:
    """Stop the service, until you start it or log in again."""
    from soul.commands.service import run_service_stop  # noqa: PLC0415 - only this command needs it

    run_service_stop(home)


@service.command("status", cls=ListedCommand)
def service_status(*, home: Home = Path()) -> None:
    """Show the state of the service; `soul status` shows that of the SOUL."""
    from soul.commands.service import run_service_status  # noqa: PLC0415 - only this command needs it

    run_service_status(home)


@service.command("logs", cls=ListedCommand)
def service_logs(*, home: Home = Path()) -> None:
    """Print the last lines of the service, including failed starts; `soul logs` has more."""
    from soul.commands.service import run_service_logs  # noqa: PLC0415 - only this command needs it

    run_service_logs(home)


@service.command("alarm", cls=ListedCommand)
def service_alarm(*, home: Home = Path()) -> None:
    """Report at ALARM_URL that systemd gave up restarting; systemd calls this itself."""
    from soul.commands.service import run_service_alarm  # noqa: PLC0415 - only this command needs it

    run_service_alarm(home)
