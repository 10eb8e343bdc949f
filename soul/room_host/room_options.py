"""The options of a room: from the command line, else from SPACE_NAME, SPACE_PORT and the like. Pure."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from common.constants import SPACE_DEFAULT_NAME, SPACE_DEFAULT_PORT
from common.errors import UsageError
from common.settings import RoomSettings

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only if the host asks for the local network
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class RoomOptions:
    """How to open a room. `port` 0 takes a free one; `bind` is an IP address."""

    name: str = SPACE_DEFAULT_NAME
    port: int = SPACE_DEFAULT_PORT
    bind: str = LOOPBACK
    token: str = field(default="", repr=False)
    folder: Path | None = None
    until_eof: bool = False
    origins: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the room."""
        return ipaddress.ip_address(self.bind).is_loopback


def resolve_room_options(
    settings: RoomSettings,
    *,
    name: str | None = None,
    port: int | None = None,
    bind: str = "",
    token: str | None = None,
    folder: Path | None = None,
    until_eof: bool = False,
) -> RoomOptions:
    """Return the options of the room; None and "" take the value of the settings, which have defaults.

    Raises:
        UsageError: `bind` is not an address.

    """
    return RoomOptions(
        (name or settings.space_name).strip()[:_MAX_NAME] or SPACE_DEFAULT_NAME,
        settings.space_port if port is None else port,
        _address(bind),
        settings.space_token.get_secret_value() if token is None else token,
        folder,
        until_eof,
        settings.space_origins,
    )


def _address(bind: str) -> str:
    known = {"": LOOPBACK, "loopback": LOOPBACK, "localhost": LOOPBACK, "lan": EVERYWHERE}
    address = known.get(bind.strip().lower(), bind.strip())
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        raise UsageError(
            f"--bind {bind} is no address",
            remedy="Use loopback, lan, or an address of this machine such as 192.0.2.2.",
        ) from None
