"""`soul space`: a room in which SOULs and one human host talk, served and hosted from this terminal."""

from __future__ import annotations

from pathlib import Path

from common.env_keys import refuse_unknown_keys
from common.settings import load_room_settings
from soul.room_host.host import host_room
from soul.room_host.room_options import resolve_room_options


def run_space(
    home: Path,
    *,
    name: str | None,
    port: int | None,
    bind: str,
    token: str | None,
    data: Path | None,
    until_eof: bool,
) -> None:
    """Open the room and host it. Raises `ConfigError` or `StorageError` for what only the caller can mend."""
    refuse_unknown_keys(home, of="SPACE_")
    settings = load_room_settings(home)
    host_room(
        resolve_room_options(settings, name=name, port=port, bind=bind, token=token, folder=data, until_eof=until_eof)
    )
