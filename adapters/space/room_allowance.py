"""How much a connection may say, and that whoever goes and comes again begins where it stopped.

Limits are remembered by address: a new connection takes over the allowance that was last given back from its address,
so that coming anew resets nothing, while many members of one address keep an allowance each. What a connection causes
for all members is counted too, in frames and characters: the addresses share equally in what a room may tell each of
them, and the connections of an address in its part, so that no address can tell the members of a room more than they
endure (`client_connection`). Pure; times are monotonic
seconds. Lost with the process.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from common.constants import SPACE_CHAT_MIN_GAP_MS

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
TOLD_FRAMES, TOLD_FRAMES_A_SECOND = 3_000, 300
TOLD_CHARS, TOLD_CHARS_A_SECOND = 4 * 1024 * 1024, 384 * 1024
"""What all members together may cause each of them to be told: a part of what a member hears, `client_connection`."""
ADDRESS_CHATS = 20
"""From one address as many members as this may talk without a pause."""
REMEMBERED_S = 60.0
_MOST_ADDRESSES = 4_096
_MOST_GIVEN_BACK = 256

Verdict = Literal["hear", "refuse", "ignore", "close"]


@dataclass(slots=True)
class Bucket:
    """Holds `most`, fills by `per_second`, and gives what is in it."""

    most: float
    per_second: float
    _level: float = field(init=False)
    _at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._level = self.most

    def take(self, amount: float, now: float) -> bool:
        """Take so much; False, and nothing is taken, if there is less."""
        if now > self._at:
            gained = (now - self._at) * self.per_second
            self._level, self._at = min(self.most, self._level + gained), now
        if amount > self._level:
            return False
        self._level -= amount
        return True


@dataclass(slots=True)
class Share:
    """A bucket of which only a part belongs to its owner, another one each time, and which may run into debt."""

    most: float
    per_second: float
    _level: float = field(default=float("inf"), init=False)
    _at: float = field(default=0.0, init=False)

    def is_open(self, part: float, now: float) -> bool:
        """Whether anything is left; `part` (of 1) is what the owner has had since it was last asked."""
        self._level = min(self.most * part, self._level + (now - self._at) * self.per_second * part)
        self._at = now
        return self._level > 0

    def charge(self, amount: float) -> None:
        """Take so much, whether it is there or not."""
        self._level -= amount


@dataclass(slots=True)
class Allowance:
    """What one connection may say: 20 frames in 5 s, bytes by a budget. `spoke_at`: when its last chat was taken."""

    spoke_at: float | None = None
    _heard: deque[float] = field(default_factory=lambda: deque(maxlen=FLOOD_FRAMES))
    _bytes: Bucket = field(default_factory=lambda: Bucket(CONNECTION_BYTES, CONNECTION_BYTES_A_SECOND))
    _told_frames: Share = field(default_factory=lambda: Share(TOLD_FRAMES, TOLD_FRAMES_A_SECOND))
    _told_chars: Share = field(default_factory=lambda: Share(TOLD_CHARS, TOLD_CHARS_A_SECOND))
    _dropped: int = 0
    _dropped_bytes: int = 0

    def may_tell(self, part: float, now: float) -> bool:
        """Whether it may cause anything for all members, where `part` of what the room may tell is its own."""
        return self._told_frames.is_open(part, now) & self._told_chars.is_open(part, now)

    def told(self, frames: int, chars: int) -> None:
        """It has caused so many frames, of so many characters together, for all members."""
        self._told_frames.charge(frames)
        self._told_chars.charge(chars)

    def judge(self, size: int, now: float) -> Verdict:
        """What to do with a frame of `size` bytes or characters that came `now`."""
        is_timely = len(self._heard) < FLOOD_FRAMES or now - self._heard[0] >= FLOOD_WINDOW_S
        if is_timely and self._bytes.take(size, now):
            self._heard.append(now)
            self._dropped = self._dropped_bytes = 0
            return "hear"
        return self.dropped(size)

    def dropped(self, size: int) -> Verdict:
        """A frame is not heard: whether to say so, and when to hear no more."""
        self._dropped += 1
        self._dropped_bytes += size
        if self._dropped > FLOOD_ENDURED or self._dropped_bytes > FLOOD_ENDURED_BYTES:
            return "close"
        return "refuse" if self._dropped <= FLOOD_ANSWERED else "ignore"


@dataclass(slots=True)
class _Address:
    used_at: float
    open: int = 0
    chats: Bucket = field(default_factory=lambda: Bucket(ADDRESS_CHATS, ADDRESS_CHATS / CHAT_GAP_S))
    bytes: Bucket = field(default_factory=lambda: Bucket(ADDRESS_BYTES, ADDRESS_BYTES_A_SECOND))
    given_back: deque[tuple[Allowance, float]] = field(default_factory=lambda: deque(maxlen=_MOST_GIVEN_BACK))


class Addresses:
    """Allowances, byte and chat budgets by address."""

    def __init__(self) -> None:
        self._known: dict[str, _Address] = {}
        self._open = 0

    def take(self, address: str, now: float) -> Allowance:
        """An allowance for a new connection: the one that was given back last from there, or a new one."""
        known = self._at(address, now)
        self._open += not known.open
        known.open += 1
        given_back = known.given_back
        while given_back:
            allowance, at = given_back.pop()
            if now - at < REMEMBERED_S:
                return allowance
        return Allowance()

    def give_back(self, address: str, allowance: Allowance, now: float) -> None:
        """A connection is gone."""
        known = self._at(address, now)
        known.given_back.append((allowance, now))
        known.open -= 1
        self._open -= not known.open

    def part_of(self, address: str, now: float) -> float:
        """The part (of 1) of what the room may tell that belongs to each connection from `address`."""
        return 1 / (max(1, self._open) * max(1, self._at(address, now).open))

    def bears_chat(self, address: str, now: float) -> bool:
        """Take a chat into account; False if all from this address together talk too much."""
        return self._at(address, now).chats.take(1, now)

    def bears(self, address: str, size: int, now: float) -> bool:
        """Take a frame of so many bytes into account; False if all from this address together say too much."""
        return self._at(address, now).bytes.take(size, now)

    def _at(self, address: str, now: float) -> _Address:
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _MOST_ADDRESSES:
                self._known = {
                    key: one for key, one in self._known.items() if one.open or now - one.used_at < REMEMBERED_S
                }
            known = self._known[address] = _Address(now)
        known.used_at = now
        return known
