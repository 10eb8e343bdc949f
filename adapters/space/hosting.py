"""The interface through which a room's server informs the program around it: a terminal, the town's page, a test.

Calls come in the order of the events, on the server's event loop, after the members' frames were sent. They must return
at once; an exception is reported through `log` and does not affect the room.
"""

from __future__ import annotations

from typing import Literal, Protocol

from adapters.space.types import SpaceEvent

LogLevel = Literal["info", "warn", "error"]


class RoomHost(Protocol):
    """The host's view of a room."""

    def happened(self, event: SpaceEvent) -> None:
        """Handle an event that was sent to the members, the host's own messages included.

        A `PresenceList` follows whenever the members or their identities changed.
        """
        ...

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """Log a line for the operator. `message` is a fixed text; `detail` may hold untrusted text."""
        ...


class SilentHost:
    """A host that ignores everything."""

    def happened(self, event: SpaceEvent) -> None:
        """Do nothing."""

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """Do nothing."""
