"""Who is connected to a room, and who of them is a member. Plain records; `room` alone changes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from adapters.space.types import Frame, Presence, StateChanged
from adapters.space.wire_events import decode_summary
from adapters.space.wire_json import encode_message
from common.constants import SPACE_MAX_PAYLOAD_BYTES

FLOOD_FRAMES = 20
FLOOD_WINDOW_S = 5.0
FLOOD_ANSWERED = 100
FLOOD_ENDURED = 1_000
_FRAME_BYTES = 64

Standing = Literal["waiting", "joined", "detached", "closing"]


@dataclass(slots=True)
class Flood:
    """Counts the frames of one connection: 20 in 5 s are heard, what is more is dropped."""

    _heard: deque[float] = field(default_factory=lambda: deque(maxlen=FLOOD_FRAMES))
    _dropped: int = 0

    def judge(self, now: float) -> Literal["hear", "refuse", "ignore", "close"]:
        """What to do with a frame that came `now` (monotonic s)."""
        if len(self._heard) < FLOOD_FRAMES or now - self._heard[0] >= FLOOD_WINDOW_S:
            self._heard.append(now)
            self._dropped = 0
            return "hear"
        self._dropped += 1
        if self._dropped > FLOOD_ENDURED:
            return "close"
        return "refuse" if self._dropped <= FLOOD_ANSWERED else "ignore"


@dataclass(slots=True)
class Link:
    """A connection.

    Attributes:
        number: what the shell calls it.
        opened_at: monotonic s.
        standing: `waiting` to join; `joined`; `detached`: the same member has come anew and this one is only kept
            open; `closing`: nothing it says counts any more.
        name: of the member it is or was, "" before.
        id: likewise.
        alive: whether it was heard since the last ping.
        flood: its frames.

    """

    number: int
    opened_at: float
    standing: Standing = "waiting"
    name: str = ""
    id: str = ""
    alive: bool = True
    flood: Flood = field(default_factory=Flood)


@dataclass(slots=True)
class Member:
    """An agent in the room. Times are ISO-8601 UTC, or monotonic s where they are numbers."""

    name: str
    id: str
    version: str
    capabilities: tuple[str, ...] | None
    joined_at: str
    last_seen: str
    link: Link
    identity: Frame | None = None
    identity_told_at: float | None = None
    state: StateChanged | None = None
    spoke_at: float | None = None

    def presence(self) -> Presence:
        return Presence(
            name=self.name,
            id=self.id,
            version=self.version,
            joined_at=self.joined_at,
            last_seen=self.last_seen,
            identity=None if self.identity is None else decode_summary(self.identity),
            capabilities=self.capabilities,
        )

    def presence_text(self, *, with_identity: bool = True) -> str:
        """This member as JSON, in the order of the wire."""
        return encode_message(
            {
                "name": self.name,
                "id": self.id,
                "version": self.version,
                "joinedAt": self.joined_at,
                "lastSeen": self.last_seen,
                "identity": self.identity if with_identity else None,
                "capabilities": None if self.capabilities is None else list(self.capabilities),
            }
        )


def presence_text(members: Iterable[Member]) -> str:
    """The frame that lists all members; where it would pass 1 MiB, the longest identities are left out."""
    listed = list(members)
    texts = [member.presence_text() for member in listed]
    sizes = [len(text.encode()) + 1 for text in texts]
    total = sum(sizes) + _FRAME_BYTES
    for place in sorted(range(len(listed)), key=lambda place: sizes[place], reverse=True):
        if total <= SPACE_MAX_PAYLOAD_BYTES:
            break
        texts[place] = listed[place].presence_text(with_identity=False)
        total += len(texts[place].encode()) + 1 - sizes[place]
    return f'{{"type":"presence","agents":[{",".join(texts)}]}}'
