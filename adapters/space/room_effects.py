"""The effects that the rules of a room produce, in order, and that its server carries out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from adapters.space.types import LogEntry, SpaceEvent


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send one text frame to each of these connections."""

    text: str
    to: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection with a close frame, after everything that was delivered to it."""

    connection: int
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Drop a connection whose peer does not answer."""

    connection: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Send a ping."""

    connection: int


@dataclass(frozen=True, slots=True)
class RecordEffect:
    """Append an entry to the record."""

    entry: LogEntry


@dataclass(frozen=True, slots=True)
class NotifyHost:
    """Show an event to the host."""

    event: SpaceEvent


@dataclass(frozen=True, slots=True)
class Log:
    """A warning for the operator of the server."""

    message: str
    detail: str = ""


Effect: TypeAlias = Deliver | Close | Abort | Ping | RecordEffect | NotifyHost | Log
