"""The state of a room: its members with their connections, claims and workspaces. Lost with the process.

It also has the effects that the room asks its server to carry out.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from cachetools import TTLCache

from adapters.space.room_allowance import CHAT_GAP_S, Addresses, Allowance, Replay
from adapters.space.types import (
    SPACE_WORKSPACE_STATE_TTL_MS,
    ActionDone,
    Claimed,
    Identified,
    IdentitySummary,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Refused,
    Said,
    ShuttingDown,
    SpaceEvent,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from adapters.space.wire import SPACE_MAX_PAYLOAD_BYTES, encode_event, encode_presence, entry_of, presence_frame
from common.clock import Clock, iso
from common.constants import SPACE_CLAIM_TTL_MS


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


REBROADCAST_AFTER_S = 45.0
MOST_OF_A_MEMBER = 20
MOST_CLAIMS = 500
_TTL_S = SPACE_CLAIM_TTL_MS / 1000

Key = tuple[str, str]
Verdict = Literal["new", "renewed", "rebroadcast", "conflict"]


@dataclass(frozen=True, slots=True)
class _Held:
    claim: Claimed
    renewed_at: float
    told_at: float


class RoomClaims:
    """The claims by (action, target). A joined string would confuse "a:b" on "c" with "a" on "b:c"."""

    def __init__(self) -> None:
        self._held: dict[Key, _Held] = {}

    def claim(self, wanted: Claimed, now: float) -> tuple[Verdict, Claimed]:
        """Make or renew a claim.

        Returns:
            `new`, `renewed` (nothing to broadcast) or `rebroadcast` (members may have dropped it) with the present
                claim; `conflict` with the claim of the present holder.

        """
        key = (wanted.action, wanted.target)
        held = self._held.get(key)
        if held is not None and held.claim.name == wanted.name:
            rebroadcast = now - held.told_at > REBROADCAST_AFTER_S
            told_at = now if rebroadcast else held.told_at
            self._held[key] = replace(held, claim=wanted, renewed_at=now, told_at=told_at)
            return ("rebroadcast" if rebroadcast else "renewed"), wanted
        if held is not None and now - held.renewed_at < _TTL_S:
            return "conflict", held.claim
        self._held.pop(key, None)
        self._held[key] = _Held(wanted, now, now)
        self._keep_few(wanted.name)
        return "new", wanted

    def done(self, name: str, action: str, target: str, now: float) -> Claimed | None:
        """End the claim of `name` after its result. The live claim of another member stays, and is returned."""
        key = (action, target)
        held = self._held.get(key)
        if held is not None and held.claim.name != name and now - held.renewed_at < _TTL_S:
            return held.claim
        self._held.pop(key, None)
        return None

    def drop_all_of(self, name: str) -> None:
        self._keep(held for held in self._held.values() if held.claim.name != name)

    def drop_expired(self, now: float) -> None:
        """Drop claims that were not renewed within a minute."""
        self._keep(held for held in self._held.values() if now - held.renewed_at <= _TTL_S)

    def live(self, now: float) -> tuple[Claimed, ...]:
        """Return the claims that have not expired, oldest first."""
        return tuple(held.claim for held in self._held.values() if now - held.renewed_at < _TTL_S)

    def _keep_few(self, name: str) -> None:
        """Drop the oldest claim of `name` if it has too many, or of the member with most if all have too many."""
        of_name = sum(held.claim.name == name for held in self._held.values())
        if len(self._held) > MOST_CLAIMS and of_name <= MOST_OF_A_MEMBER:
            name = Counter(held.claim.name for held in self._held.values()).most_common(1)[0][0]
        elif of_name <= MOST_OF_A_MEMBER:
            return
        del self._held[next(key for key, held in self._held.items() if held.claim.name == name)]

    def _keep(self, held: Iterable[_Held]) -> None:
        self._held = {(each.claim.action, each.claim.target): each for each in held}


PRESENCE_GAP_S = 0.25
PRESENCE_CHARS_A_SECOND = 128 * 1024
"""Limit of the member lists for each member."""
PRESENCE_BYTES_A_SECOND = 32 * 1024 * 1024
"""Limit of the member lists for all members together: a large room with long identities sends them less often."""

MAX_WORKSPACES = 100
REMOVED_S = 600.0
_MOST_NAMES = 4_096
_WORKSPACE_TTL_S = SPACE_WORKSPACE_STATE_TTL_MS / 1000

_Kept: TypeAlias = Identified | StateChanged | ActionDone | Reflected | WorkspaceProgress


class Workspaces:
    """The latest report for each workspace, at most 100; the oldest are dropped first, and all after a day."""

    def __init__(self, clock: Clock) -> None:
        self._latest = TTLCache[str, WorkspaceProgress](MAX_WORKSPACES, _WORKSPACE_TTL_S, timer=clock.monotonic)

    def put(self, progress: WorkspaceProgress) -> None:
        self._latest[progress.workspace] = progress

    def drop_all_of(self, name: str) -> None:
        for key in [key for key, progress in self._latest.items() if progress.name == name]:
            self._latest.pop(key, None)

    def all(self) -> tuple[WorkspaceProgress, ...]:
        """Return the reports of the last day, oldest first."""
        return tuple(self._latest.values())


class RoomState:
    """Connections, members, claims and workspaces of one room; `out` holds the effects that were not taken yet.

    `last_chats` maps names that have left to the time of their last chat (monotonic s), while the chat limit needs it.
    `removed` holds the appearance of each removed name, with its address, until it is allowed again. `broadcast_frames`
    and `broadcast_chars` count all broadcasts, without the member lists.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.replay = Replay()
        self.room_id = ""
        self.links: dict[int, MemberLink] = {}
        self.members: dict[str, RoomMember] = {}
        self.claims = RoomClaims()
        self.workspaces = Workspaces(clock)
        self.addresses = Addresses(clock)
        self.last_chats = TTLCache[str, float](_MOST_NAMES, CHAT_GAP_S, timer=clock.monotonic)
        self.removed = TTLCache[tuple[str, str], None](_MOST_NAMES, REMOVED_S, timer=clock.monotonic)
        self.broadcast_frames = self.broadcast_chars = 0
        self.presence_due = False
        self.presence_number = 0
        self._presence_at = float("-inf")
        self.out: list[Effect] = []

    @property
    def now(self) -> float:
        """Monotonic s."""
        return self.clock.monotonic()

    @property
    def at(self) -> str:
        """The wall time, ISO-8601 UTC."""
        return iso(self.clock.now())

    def member_of(self, link: MemberLink) -> RoomMember | None:
        """Return the member that is joined through a connection, or None."""
        return self.members.get(link.name) if link.standing == "joined" else None

    def take_effects(self) -> list[Effect]:
        """Return the pending effects and clear them."""
        effects, self.out = self.out, []
        return effects

    def deliver(self, text: str, to: tuple[int, ...] | None = None) -> None:
        """Send one frame to the given connections, or to all members."""
        numbers = tuple(member.link.number for member in self.members.values()) if to is None else to
        if to is None:
            self.broadcast_frames += 1
            self.broadcast_chars += len(text)
        if numbers:
            self.out.append(Deliver(text, numbers))

    def record(self, entry: LogEntry) -> None:
        self.replay.add(entry)
        self.out.append(RecordEffect(entry))

    def broadcast(self, event: Left | Said | Typing | Claimed | ShuttingDown | _Kept) -> None:
        """Send an event to all members and the host, without recording it."""
        self.deliver(encode_event(event))
        self.out.append(NotifyHost(event))

    def share(self, event: Said | Claimed | _Kept) -> None:
        """Record an event, then broadcast it."""
        self.record(entry_of(event))
        self.broadcast(event)

    def presence_changed(self, told: RoomMember | None = None) -> None:
        """Send the changed member list to all members but `told`, at most four times a second."""
        self.presence_number += 1
        if told is not None:
            told.presence_sent = self.presence_number
        self.presence_due = True
        self.send_presence()

    def send_presence(self) -> None:
        """Send the member list to all members that have an older one, if a list may be sent now."""
        if not self.presence_due or self.now < self._presence_at:
            return
        self.presence_due = False
        self._presence_at = self.now + PRESENCE_GAP_S
        behind = [member for member in self.members.values() if member.presence_sent < self.presence_number]
        if behind:
            text = presence_text(self.members.values())
            gap_s = len(text) * max(len(behind) / PRESENCE_BYTES_A_SECOND, 1 / PRESENCE_CHARS_A_SECOND)
            self._presence_at = max(self._presence_at, self.now + gap_s)
            self.deliver(text, tuple(member.link.number for member in behind))
        for member in behind:
            member.presence_sent = self.presence_number
        self.out.append(NotifyHost(PresenceList(tuple(member.presence() for member in self.members.values()))))

    def refuse(self, link: MemberLink, message: str) -> None:
        """Send an `error` frame to one connection. `message` begins with one of `ERROR_PREFIXES`."""
        self.deliver(encode_event(Refused(message)), (link.number,))

    def close(self, link: MemberLink, code: int, reason: str) -> None:
        """Close a connection; its member leaves."""
        member = self.member_of(link)
        link.standing = "closing"
        self.out.append(Close(link.number, code, reason))
        if member is not None:
            self.leave(member)

    def leave(self, member: RoomMember) -> None:
        """Remove a member with its claims and workspace reports, and tell the others."""
        left = Left(member.name, member.id, self.at)
        self.record(entry_of(left))
        del self.members[member.name]
        self._remember_chat_time(member)
        member.link.standing = "closing"
        self.broadcast(left)
        self.workspaces.drop_all_of(member.name)
        self.claims.drop_all_of(member.name)
        self.presence_changed()

    def _remember_chat_time(self, member: RoomMember) -> None:
        """Keep the time of a member's last chat by name, so that a new connection does not reset the chat limit."""
        if member.link.allowance.spoke_at is not None:
            self.last_chats[member.name] = member.link.allowance.spoke_at
