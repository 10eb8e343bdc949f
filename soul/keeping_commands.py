"""How a home is set up and kept alive; what each command does is in `soul/commands/`, loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from soul.commands.help import Group, ListedCommand
from soul.commands.options import Home, Json

config = typer.Typer(help="Its settings: what they are, what they mean, and how to change them.", cls=Group)


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
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value; '' for the default.")],
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
