"""What a room's server tells the program around it: a terminal, the town's page, a test.

Calls come in the order in which things happened, on the server's event loop, after the members have been sent theirs.
They must return at once; one that raises is reported by `log` and harms nobody in the room.
"""

from __future__ import annotations

from typing import Literal, Protocol

from adapters.space.types import Event

LogLevel = Literal["info", "warn", "error"]


class RoomHost(Protocol):
    """The human's side of a room."""

    def happened(self, event: Event) -> None:
        """Take note of what the members were told: Joined, Left, Said (the host's own, too), Typing, Claimed and so on.

        `PresenceList` comes whenever who is present, or what they told of themselves, has changed.
        """
        ...

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """A line for whoever runs the server; `message` is ours, `detail` may hold foreign text."""
        ...


class SilentHost:
    """Nobody looks on."""

    def happened(self, event: Event) -> None:
        """Nothing."""

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """Nothing."""
