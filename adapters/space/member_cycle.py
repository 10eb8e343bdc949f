"""When a member looks for its room, and when it knocks: one life cycle, one connection at a time, never given up.

A room that vanished is sought sooner, one that closed in order later, and one that refuses us is left in peace for a
while. Where somebody else is there under our name we come again after 5, 10 and 20 seconds, then under another name, so
that nobody can silence us by taking ours. Nothing survives a crash. Pure; times are monotonic seconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.space.types import Status

RETRY_DELAYS_S: Final = (5.0, 10.0, 20.0, 60.0)
SPREAD: Final = 0.2
LOOK_AGAIN_AFTER: Final = 4
REFUSED_DELAY_S: Final = 300.0
GIVE_WAY_AFTER: Final = 4
DISPLACED_FORGOTTEN_S: Final = 600.0
FIRST_LOOK_S: Final = 30.0
JOIN_WITHIN_S: Final = 15.0
DRAIN_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before `until`."""

    until: float


@dataclass(frozen=True, slots=True)
class Discover:
    """Find out where the room is; then `found` or `not_found`."""


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection; then `opened` or `ended`."""

    url: str


Step: TypeAlias = Wait | Discover | Connect


class Cycle:
    """The state of a member towards its room.

    Args:
        rng: spreads the delays, so that the members of a room do not knock all at once.
        interval_s: seconds between two looks for a room, once there was none; asked each time.

    """

    def __init__(self, *, rng: random.Random, interval_s: Callable[[], float]) -> None:
        self._rng = rng
        self._interval_s = interval_s
        self.status: Status = "disconnected"
        self.url = ""
        self._last_url = ""
        self._next_at = float("-inf")
        self._deadline: float | None = None
        self._failures = 0
        self._looks = 0
        self._displacements = 0
        self._displaced_at = float("-inf")
        self._closed_in_order = False

    def step(self, now: float) -> Step:
        """What to do next. Only without a connection; `Connect` is given once and then has to be answered."""
        if self.status != "disconnected":
            raise RuntimeError(f"a member has one connection, and it is {self.status}")
        if now < self._next_at:
            return Wait(self._next_at)
        if not self.url:
            return Discover()
        self.status = "connecting"
        return Connect(self.url)

    def found(self, url: str, now: float) -> None:
        """The room is at `url`."""
        self.url = self._last_url = url
        self._next_at = now

    def not_found(self, now: float) -> None:
        """No room can be seen; one that we lost is tried where it was."""
        if self._failures:
            self.found(self._last_url, now)
            return
        self._next_at = now + self._spread(self._interval_s() if self._looks else FIRST_LOOK_S)
        self._looks += 1

    def opened(self, now: float) -> None:
        """The connection stands, and we have asked to join."""
        self._deadline = now + JOIN_WITHIN_S

    def joined(self) -> None:
        """The room replayed its record: we are in."""
        self.status = "joined"
        self._deadline = None
        self._failures = self._looks = 0
        self._closed_in_order = False

    def closing(self, now: float) -> None:
        """The room is about to close; until then we stay."""
        if self.status == "joined":
            self.status = "draining"
            self._deadline = now + DRAIN_WITHIN_S

    def overdue(self, now: float) -> bool:
        """Whether the room has left us waiting for too long; then the connection must be closed."""
        return self._deadline is not None and now >= self._deadline

    @property
    def deadline(self) -> float | None:
        """When `overdue` may become true."""
        return self._deadline

    def ended(self, now: float, *, refused: bool = False) -> None:
        """There is no connection any more, or there never was. `refused`: the room will not have us."""
        drained = self.status == "draining"
        self.status, self._deadline = "disconnected", None
        if refused:
            self._next_at = now + REFUSED_DELAY_S * (1 + self._rng.random() * SPREAD)
        elif drained:
            self.url, self._closed_in_order, self._looks = "", True, 1
            self._next_at = now + self._spread(FIRST_LOOK_S)
        elif self._closed_in_order:
            self.url = ""
            self._next_at = now + self._spread(self._interval_s())
        else:
            self._retry(now)

    def displaced(self, now: float) -> bool:
        """Somebody else is there under our name. Returns whether it is time to come under another one."""
        self.ended(now)
        if now - self._displaced_at >= DISPLACED_FORGOTTEN_S:
            self._displacements = 0
        self._displacements, self._displaced_at = self._displacements + 1, now
        gives_way = self._displacements >= GIVE_WAY_AFTER
        attempts = self._displacements - (GIVE_WAY_AFTER if gives_way else 1)
        delay = RETRY_DELAYS_S[min(attempts, len(RETRY_DELAYS_S) - 1)]
        self._next_at = now + self._spread(delay)
        return gives_way

    def parted(self, now: float) -> None:
        """We left the room to come in anew, at once."""
        self.status, self._deadline, self._next_at = "disconnected", None, now

    def _retry(self, now: float) -> None:
        self._next_at = now + self._spread(RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S) - 1)])
        self._failures += 1
        if self._failures >= LOOK_AGAIN_AFTER:
            self.url = ""

    def _spread(self, seconds: float) -> float:
        return seconds * self._rng.uniform(1 - SPREAD, 1 + SPREAD)
