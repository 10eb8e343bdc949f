"""`soul space`: serves a room in which SOULs and one human host talk; this terminal is the host's."""

from pathlib import Path
from typing import Annotated

import typer

from common.errors import SettingsError
from common.settings import load_room_settings, unknown_keys
from soul.commands.options import expanded
from soul.room_host.host import host_room
from soul.room_host.room_options import resolve_room_options


def run_space(
    *,
    name: Annotated[str | None, typer.Option("--name", help="Its name; else SPACE_NAME, else agent-space.")] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="Its port; else SPACE_PORT, else 7777; 0 picks a free one.", min=0, max=65535),
    ] = None,
    bind: Annotated[str, typer.Option("--bind", help="Who can join: loopback, lan, or an address.")] = "loopback",
    token: Annotated[
        str | None,
        typer.Option("--token", help="The token that members need in their SPACE_URL. Default: SPACE_TOKEN."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder for the record of the room. Default: ~/.local/state/soul/spaces."),
    ] = None,
    until_eof: Annotated[
        bool, typer.Option("--until-eof", help="Without a terminal: close the room at the end of the input.")
    ] = False,
    home: Annotated[
        Path,
        typer.Option("--home", callback=expanded, help="The folder whose .env may hold the SPACE_ settings."),
    ] = Path(),
) -> None:
    """Open the room and host it. Raises `ConfigError` or `StorageError` for what only the caller can correct."""
    if unknown := unknown_keys(home, of="SPACE_"):
        raise SettingsError(unknown)
    settings = load_room_settings(home)
    host_room(
        resolve_room_options(settings, name=name, port=port, bind=bind, token=token, folder=data, until_eof=until_eof)
    )
