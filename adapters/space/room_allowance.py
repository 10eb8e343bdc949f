"""How much a connection may say, and that whoever goes and comes again begins where it stopped.

Limits are remembered by address: a new connection takes over the allowance that was last given back from its address,
so that coming anew resets nothing, while many members of one address keep an allowance each. Pure; times are monotonic
seconds. Lost with the process.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

FLOOD_FRAMES = 20
FLOOD_WINDOW_S = 5.0
FLOOD_ANSWERED = 100
FLOOD_ENDURED = 1_000
FLOOD_ENDURED_BYTES = 16 * 1024 * 1024
CONNECTION_BYTES = 1_310_720
CONNECTION_BYTES_A_SECOND = 131_072
ADDRESS_BYTES = 8 * 1024 * 1024
ADDRESS_BYTES_A_SECOND = 1024 * 1024
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
class Allowance:
    """What one connection may say: 20 frames in 5 s, bytes by a budget. `spoke_at`: when its last chat was taken."""

    spoke_at: float | None = None
    _heard: deque[float] = field(default_factory=lambda: deque(maxlen=FLOOD_FRAMES))
    _bytes: Bucket = field(default_factory=lambda: Bucket(CONNECTION_BYTES, CONNECTION_BYTES_A_SECOND))
    _dropped: int = 0
    _dropped_bytes: int = 0

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
    bytes: Bucket = field(default_factory=lambda: Bucket(ADDRESS_BYTES, ADDRESS_BYTES_A_SECOND))
    given_back: deque[tuple[Allowance, float]] = field(default_factory=lambda: deque(maxlen=_MOST_GIVEN_BACK))


class Addresses:
    """Allowances and byte budgets by address."""

    def __init__(self) -> None:
        self._known: dict[str, _Address] = {}

    def take(self, address: str, now: float) -> Allowance:
        """An allowance for a new connection: the one that was given back last from there, or a new one."""
        given_back = self._at(address, now).given_back
        while given_back:
            allowance, at = given_back.pop()
            if now - at < REMEMBERED_S:
                return allowance
        return Allowance()

    def give_back(self, address: str, allowance: Allowance, now: float) -> None:
        """A connection is gone."""
        self._at(address, now).given_back.append((allowance, now))

    def bears(self, address: str, size: int, now: float) -> bool:
        """Take a frame of so many bytes into account; False if all from this address together say too much."""
        return self._at(address, now).bytes.take(size, now)

    def _at(self, address: str, now: float) -> _Address:
        known = self._known.get(address)
        if known is None:
            if len(self._known) >= _MOST_ADDRESSES:
                self._known = {key: one for key, one in self._known.items() if now - one.used_at < REMEMBERED_S}
            known = self._known[address] = _Address(now)
        known.used_at = now
        return known
