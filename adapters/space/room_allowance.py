"""Limits what each connection and address may cause in a room: frames, characters, broadcasts and replayed history.

A new connection takes over the allowance that was last returned from its address, so that reconnecting resets nothing,
while several members of one address keep an allowance each. All addresses have equal shares of what the room may
broadcast, so that no address can push the members' inbound traffic over the limit of their clients.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from cachetools import TTLCache

from adapters.space.types import LogEntry
from adapters.space.wire import SPACE_MAX_PAYLOAD_BYTES, encode_entry
from common.clock import Clock
from common.constants import SECOND_MS

REPLAY_BASE = 200
REPLAY_PER_AGENT = 50
REPLAY_MAX = 1_000
_FRAME_BYTES = 256
_MOST_BYTES = SPACE_MAX_PAYLOAD_BYTES - _FRAME_BYTES
_FOREMOST = frozenset({"chat", "action_result"})


def dynamic_history_limit(agents: int) -> int:
    """Return the number of entries for a newcomer; `agents` counts the members including it."""
    return min(REPLAY_BASE + max(0, agents - 2) * REPLAY_PER_AGENT, REPLAY_MAX)


class Replay:
    """The most recent entries of a room's record, as many as can be replayed."""

    def __init__(self, entries: Iterable[LogEntry] = ()) -> None:
        self._foremost = _Tail()
        self._others = _Tail()
        self._count = 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: LogEntry) -> None:
        self._count += 1
        (self._foremost if entry.type in _FOREMOST else self._others).add(self._count, encode_entry(entry))

    def select(self, limit: int) -> list[str]:
        """Return at most `limit` entries as JSON, oldest first, below 1 MiB together, always with the newest."""
        if limit <= 0 or not self._count:
            return []
        newest = max(self._foremost.last(1) + self._others.last(1))
        foremost = [kept for kept in self._foremost.last(limit - 1) if kept != newest]
        others = [kept for kept in self._others.last(limit) if kept != newest]
        room_left = limit - 1 - len(foremost)
        chosen = sorted([newest, *foremost, *others[len(others) - min(room_left, len(others)) :]], reverse=True)
        texts: list[str] = []
        size = 0
        for _, text in chosen:
            size += len(text.encode()) + 1
            if size > _MOST_BYTES:
                break
            texts.append(text)
        return texts[::-1]


class _Tail:
    """The last entries of one kind, with their position in the record."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, str]] = deque(maxlen=REPLAY_MAX)
        self._chars = 0

    def add(self, place: int, text: str) -> None:
        if len(self._kept) == REPLAY_MAX:
            self._chars -= len(self._kept.popleft()[1])
        self._kept.append((place, text))
        self._chars += len(text)
        while self._chars > _MOST_BYTES and len(self._kept) > 1:
            self._chars -= len(self._kept.popleft()[1])

    def last(self, count: int) -> list[tuple[int, str]]:
        return list(self._kept)[-count:] if count > 0 else []


SPACE_CHAT_MIN_GAP_MS = 3 * SECOND_MS

CHAT_GAP_S = SPACE_CHAT_MIN_GAP_MS / 1000
FLOOD_FRAMES = 20
FLOOD_WINDOW_S = 5.0
FLOOD_ANSWERED = 100
FLOOD_ENDURED = 1_000
FLOOD_ENDURED_BYTES = 16 * 1024 * 1024
CONNECTION_BYTES = 1_310_720
CONNECTION_BYTES_A_SECOND = 131_072
ADDRESS_BYTES = 8 * 1024 * 1024
ADDRESS_BYTES_A_SECOND = 1024 * 1024
BROADCAST_FRAMES, BROADCAST_FRAMES_A_SECOND = 3_000, 300
BROADCAST_CHARS, BROADCAST_CHARS_A_SECOND = 4 * 1024 * 1024, 384 * 1024
"""Limits of all broadcasts together, below what `client.InboundLimiter` accepts from one room."""
ADDRESS_CHATS = 20
"""This many members of one address may chat at the full rate."""
REMEMBERED_S = 60.0
_MOST_ADDRESSES = 4_096
_MAX_RELEASED = 256

Verdict = Literal["accept", "refuse", "ignore", "close"]


@dataclass(slots=True)
class Bucket:
    """A token bucket with the capacity `most` and the refill rate `per_second`."""

    most: float
    per_second: float
    _level: float = field(init=False)
    _at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._level = self.most

    def take(self, amount: float, now: float) -> bool:
        """Take `amount`; return False and take nothing if there is less."""
        if now > self._at:
            gained = (now - self._at) * self.per_second
            self._level, self._at = min(self.most, self._level + gained), now
        if amount > self._level:
            return False
        self._level -= amount
        return True


@dataclass(slots=True)
class AllowanceShare:
    """A bucket of which a varying share belongs to one connection, and whose level may become negative."""

    most: float
    per_second: float
    _level: float = field(default=float("inf"), init=False)
    _at: float = field(default=0.0, init=False)

    def refill(self, part: float, now: float) -> bool:
        """Refill at the `part` (0 to 1) of the rate since the last call; return whether anything is left."""
        self._level = min(self.most * part, self._level + (now - self._at) * self.per_second * part)
        self._at = now
        return self._level > 0

    def charge(self, amount: float) -> None:
        """Take `amount`, even if there is less."""
        self._level -= amount


@dataclass(slots=True)
class Allowance:
    """The limits of one connection: 20 frames in 5 s, and a byte budget. `spoke_at` is the time of its last chat."""

    spoke_at: float | None = None
    _accepted: deque[float] = field(default_factory=lambda: deque(maxlen=FLOOD_FRAMES))
    _bytes: Bucket = field(default_factory=lambda: Bucket(CONNECTION_BYTES, CONNECTION_BYTES_A_SECOND))
    _broadcast_frames: AllowanceShare = field(
        default_factory=lambda: AllowanceShare(BROADCAST_FRAMES, BROADCAST_FRAMES_A_SECOND)
    )
    _broadcast_chars: AllowanceShare = field(
        default_factory=lambda: AllowanceShare(BROADCAST_CHARS, BROADCAST_CHARS_A_SECOND)
    )
    _dropped: int = 0
    _dropped_bytes: int = 0

    def may_broadcast(self, part: float, now: float) -> bool:
        """Return whether it may cause a broadcast; `part` (0 to 1) is its share of the room's limit."""
        return self._broadcast_frames.refill(part, now) & self._broadcast_chars.refill(part, now)

    def charge_broadcasts(self, frames: int, chars: int) -> None:
        """Charge broadcasts that it caused."""
        self._broadcast_frames.charge(frames)
        self._broadcast_chars.charge(chars)

    def check(self, size: int, now: float) -> Verdict:
        """Return what to do with a frame of `size` bytes or characters that was received at `now`."""
        is_timely = len(self._accepted) < FLOOD_FRAMES or now - self._accepted[0] >= FLOOD_WINDOW_S
        if is_timely and self._bytes.take(size, now):
            self._accepted.append(now)
            self._dropped = self._dropped_bytes = 0
            return "accept"
        return self.dropped(size)

    def dropped(self, size: int) -> Verdict:
        """Count a frame that was not handled; return whether to answer, ignore it, or close the connection."""
        self._dropped += 1
        self._dropped_bytes += size
        if self._dropped > FLOOD_ENDURED or self._dropped_bytes > FLOOD_ENDURED_BYTES:
            return "close"
        return "refuse" if self._dropped <= FLOOD_ANSWERED else "ignore"


@dataclass(slots=True)
class _Address:
    open: int = 0
    chats: Bucket = field(default_factory=lambda: Bucket(ADDRESS_CHATS, ADDRESS_CHATS / CHAT_GAP_S))
    bytes: Bucket = field(default_factory=lambda: Bucket(ADDRESS_BYTES, ADDRESS_BYTES_A_SECOND))
    released: deque[tuple[Allowance, float]] = field(default_factory=lambda: deque(maxlen=_MAX_RELEASED))


class Addresses:
    """The allowances, byte budgets and chat budgets of all addresses.

    An address without a connection is remembered for `REMEMBERED_S`, in which its budgets become full again.
    """

    def __init__(self, clock: Clock) -> None:
        self._open: dict[str, _Address] = {}
        self._left = TTLCache[str, _Address](_MOST_ADDRESSES, REMEMBERED_S, timer=clock.monotonic)

    def acquire(self, address: str, now: float) -> Allowance:
        """Return the allowance for a new connection: the last one returned from its address, or a new one."""
        known = self._open.setdefault(address, self._left.pop(address, _Address()))
        known.open += 1
        released = known.released
        while released:
            allowance, at = released.pop()
            if now - at < REMEMBERED_S:
                return allowance
        return Allowance()

    def release(self, address: str, allowance: Allowance, now: float) -> None:
        """Return the allowance of a connection that ended."""
        known = self._open[address]
        known.released.append((allowance, now))
        known.open -= 1
        if not known.open:
            self._left[address] = self._open.pop(address)

    def share_of(self, address: str) -> float:
        """Return the share (0 to 1) of the broadcast limit that each connection from `address` has."""
        return 1 / (len(self._open) * self._open[address].open)

    def allows_chat(self, address: str, now: float) -> bool:
        """Count a chat; return False if its address is over its chat budget."""
        return self._open[address].chats.take(1, now)

    def allows_frame(self, address: str, size: int, now: float) -> bool:
        """Count a frame of `size` bytes; return False if its address is over its byte budget."""
        return self._open[address].bytes.take(size, now)
