"""What a room wants done. Its rules make these in order; whoever holds sockets and files carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from adapters.space.hosting import LogLevel
from adapters.space.types import Event, LogEntry


@dataclass(frozen=True, slots=True)
class Deliver:
    """Send one text frame to each of these connections."""

    text: str
    to: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection in an orderly way, after all that was delivered to it."""

    connection: int
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Cut a connection off: nobody is there."""

    connection: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask whether somebody is there."""

    connection: int


@dataclass(frozen=True, slots=True)
class Record:
    """Keep a line in the record."""

    entry: LogEntry


@dataclass(frozen=True, slots=True)
class Tell:
    """Let the host see it."""

    event: Event


@dataclass(frozen=True, slots=True)
class Log:
    """A line for whoever runs the server."""

    level: LogLevel
    message: str
    detail: str = ""


Effect: TypeAlias = Deliver | Close | Abort | Ping | Record | Tell | Log
