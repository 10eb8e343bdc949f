"""Who is connected to a room, and who of them is a member. Plain records; `room` alone changes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from adapters.space.room_allowance import Allowance
from adapters.space.types import IdentitySummary, Presence, StateChanged
from adapters.space.wire import encode_presence, presence_frame
from common.constants import SPACE_MAX_PAYLOAD_BYTES

_FRAME_BYTES = 256

Standing = Literal["waiting", "joined", "detached", "closing"]


@dataclass(slots=True)
class Link:
    """A connection.

    Attributes:
        number: what the shell calls it.
        opened_at: monotonic s.
        address: where it comes from; "" if unknown.
        allowance: what it may still say.
        standing: `waiting` to join; `joined`; `detached`: the same member has come anew and this one is only kept
            open; `closing`: nothing it says counts any more.
        name: of the member it is or was, "" before.
        id: likewise.
        alive: whether it was heard since the last ping.
        asked_at: when it was asked whether it still lives, as somebody wants its name; None once it was heard.

    """

    number: int
    opened_at: float
    address: str = ""
    allowance: Allowance = field(default_factory=Allowance)
    standing: Standing = "waiting"
    name: str = ""
    id: str = ""
    alive: bool = True
    asked_at: float | None = None

    def lives(self) -> None:
        """It was heard."""
        self.alive, self.asked_at = True, None


@dataclass(slots=True)
class Member:
    """An agent in the room. Times are ISO-8601 UTC, or monotonic s where they are numbers.

    Attributes:
        resume: what its process must show to take its own place over from another connection; "" if it knows no such
            thing.
        presence_told: the number of the last list of members that it has.

    """

    name: str
    id: str
    version: str
    capabilities: tuple[str, ...] | None
    joined_at: str
    last_seen: str
    link: Link
    identity: IdentitySummary | None = None
    state: StateChanged | None = None
    resume: str = field(default="", repr=False)
    presence_told: int = 0

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


def presence_text(members: Iterable[Member], resume: str = "") -> str:
    """The frame that lists all members; where it would pass 1 MiB, the longest identities are left out.

    `resume` goes to one member only, which asked for it.
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
