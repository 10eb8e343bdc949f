"""The members of a room with their connections, and the effects that the room asks its server to carry out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from adapters.space.room_allowance import Allowance
from adapters.space.types import IdentitySummary, LogEntry, Presence, SpaceEvent, StateChanged
from adapters.space.wire import SPACE_MAX_PAYLOAD_BYTES, encode_presence, presence_frame


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


_FRAME_BYTES = 256

Standing = Literal["waiting", "joined", "detached", "closing"]


@dataclass(slots=True)
class MemberLink:
    """A connection.

    Attributes:
        number: the server's number for it.
        opened_at: monotonic s.
        address: the remote address, "" if unknown.
        allowance: its remaining rate limits.
        standing: `waiting` to join; `joined`; `detached`: the member has rejoined and this connection is only kept
            open; `closing`: its frames are ignored.
        name: the name of its member, "" before the join.
        id: the id of its member, "" before the join.
        alive: whether anything was received since the last ping.
        challenged_at: when it was pinged because another connection wants its name (monotonic s); None after an answer.

    """

    number: int
    opened_at: float
    address: str = ""
    allowance: Allowance = field(default_factory=Allowance)
    standing: Standing = "waiting"
    name: str = ""
    id: str = ""
    alive: bool = True
    challenged_at: float | None = None

    def mark_alive(self) -> None:
        """Record that something was received."""
        self.alive, self.challenged_at = True, None


@dataclass(slots=True)
class RoomMember:
    """An agent in the room. Times are ISO-8601 UTC, or monotonic s if they are numbers.

    Attributes:
        resume: the token with which another connection of its process may replace this one; "" if it knows no tokens.
        presence_sent: the number of the last member list that was sent to it.

    """

    name: str
    id: str
    version: str
    capabilities: tuple[str, ...] | None
    joined_at: str
    last_seen: str
    link: MemberLink
    identity: IdentitySummary | None = None
    state: StateChanged | None = None
    resume: str = field(default="", repr=False)
    presence_sent: int = 0

    def presence(self) -> Presence:
        return Presence(
            name=self.name,
            id=self.id,
            version=self.version,
            joined_at=self.joined_at,
            last_seen=self.last_seen,
            identity=self.identity,
            capabilities=self.capabilities,
        )


def presence_text(members: Iterable[RoomMember], resume: str = "") -> str:
    """Return the frame that lists all members; the longest identities are left out if it would exceed 1 MiB.

    `resume` is the token of the one receiver, if the frame is for a single newcomer.
    """
    listed = [member.presence() for member in members]
    texts = [encode_presence(agent) for agent in listed]
    sizes = [len(text.encode()) + 1 for text in texts]
    total = sum(sizes) + _FRAME_BYTES
    for place in sorted(range(len(listed)), key=lambda place: sizes[place], reverse=True):
        if total <= SPACE_MAX_PAYLOAD_BYTES:
            break
        texts[place] = encode_presence(replace(listed[place], identity=None))
        total += len(texts[place].encode()) + 1 - sizes[place]
    return presence_frame(texts, resume)
