"""The connection cycle of a member: when it searches for its room, when it connects, and under which name. Pure.

It never gives up. After a lost connection it retries soon, after an orderly shutdown later. After a refusal it searches
again in 5 minutes, and prefers other rooms for an hour. If another program holds its name it retries after 5, 10 and 20
seconds, and then joins under an alias, so that nobody can silence it by taking its name. Lost with the process; times
are monotonic seconds.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from adapters.space.types import Status
from common.text.hidden import appearance

TAKE_BACK_AFTER_S: Final = 600.0
_ALIASES = range(2, 100)


def aliases(name: str) -> tuple[str, ...]:
    """Return the aliases of `name`: `ada-2`, `ada-3` and so on up to `ada-99`."""
    return tuple(f"{name}-{number}" for number in _ALIASES)


class MemberName:
    """The name of one member.

    Attributes:
        own: the configured name.
        current: the name in use.

    """

    def __init__(self, own: str, rng: random.Random) -> None:
        self.own = self.current = own
        self._rng = rng
        self._since = float("-inf")

    @property
    def is_own(self) -> bool:
        return self.current == self.own

    def give_way(self, now: float) -> str:
        """Switch to another alias and return it: first `ada-2`, then a random one that nobody can predict."""
        others = [alias for alias in aliases(self.own) if alias != self.current]
        self.current = others[0] if self.is_own else self._rng.choice(others)
        self._since = now
        return self.current

    def is_free_again(self, present: Iterable[str], now: float) -> bool:
        """Return whether the own name may be used again: nobody present has it, and we left it at least 10 minutes ago.

        The delay limits the cost of a program that takes the name and leaves again and again.
        """
        if self.is_own or now - self._since < TAKE_BACK_AFTER_S:
            return False
        return appearance(self.own) not in {appearance(name) for name in present}

    def take_back(self) -> None:
        """Switch back to the own name."""
        self.current = self.own


RETRY_DELAYS_S: Final = (5.0, 10.0, 20.0, 60.0)
SPREAD: Final = 0.2
LOOK_AGAIN_AFTER: Final = 4
REFUSED_DELAY_S: Final = 300.0
REFUSED_KEPT_S: Final = 3600.0
GIVE_WAY_AFTER: Final = 4
DISPLACED_FORGOTTEN_S: Final = 600.0
FIRST_LOOK_S: Final = 30.0
JOIN_WITHIN_S: Final = 15.0
DRAIN_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class MemberWait:
    """Do nothing before `until`."""

    until: float


@dataclass(frozen=True, slots=True)
class Discover:
    """Find the room; then call `found` or `not_found`."""


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection; then call `opened` or `ended`."""

    url: str


Step: TypeAlias = MemberWait | Discover | Connect


class MemberCycle:
    """The state of a member towards its room.

    Args:
        rng: spreads the delays, so that the members of a room do not connect all at once.
        interval_s: returns the seconds between two searches after one found no room; called each time.

    """

    def __init__(self, *, rng: random.Random, interval_s: Callable[[], float]) -> None:
        self._rng = rng
        self._interval_s = interval_s
        self.status: Status = "disconnected"
        self.url = ""
        self._last_url = ""
        self._refused_at: dict[str, float] = {}
        self._next_at = float("-inf")
        self._deadline: float | None = None
        self._failures = 0
        self._looks = 0
        self._displacements = 0
        self._displaced_at = float("-inf")
        self._closed_in_order = False

    def step(self, now: float) -> Step:
        """Return what to do next. Only without a connection; `Connect` is returned once and must then be answered."""
        if self.status != "disconnected":
            raise RuntimeError(f"a member has one connection, and it is {self.status}")
        if now < self._next_at:
            return MemberWait(self._next_at)
        if not self.url:
            return Discover()
        self.status = "connecting"
        return Connect(self.url)

    def refused(self, now: float) -> list[str]:
        """Return the URLs of the rooms that did not accept this member within the last hour."""
        return [url for url, at in self._refused_at.items() if now - at < REFUSED_KEPT_S]

    def found(self, url: str, now: float) -> None:
        """Record that the room is at `url`."""
        self.url = self._last_url = url
        self._next_at = now

    def not_found(self, now: float) -> None:
        """Record that no room was found. After a lost connection the last URL is tried again."""
        if self._failures:
            self.found(self._last_url, now)
            return
        self._next_at = now + self._spread(self._interval_s() if self._looks else FIRST_LOOK_S)
        self._looks += 1

    def opened(self, now: float) -> None:
        """Record that the connection was opened and the join sent."""
        self._deadline = now + JOIN_WITHIN_S

    def joined(self) -> None:
        """Record that the room replayed its record, which completes the join."""
        self.status = "joined"
        self._deadline = None
        self._failures = self._looks = 0
        self._closed_in_order = False

    def closing(self, now: float) -> None:
        """Record that the room announced its shutdown; the connection stays open until then."""
        if self.status == "joined":
            self.status = "draining"
            self._deadline = now + DRAIN_WITHIN_S

    def overdue(self, now: float) -> bool:
        """Return whether the room has missed a deadline; the connection must then be closed."""
        return self._deadline is not None and now >= self._deadline

    @property
    def deadline(self) -> float | None:
        """When `overdue` becomes true; None for never."""
        return self._deadline

    def ended(self, now: float, *, refused: bool = False) -> None:
        """Record that the connection has ended or failed. `refused`: the room does not accept this member."""
        drained = self.status == "draining"
        self.status, self._deadline = "disconnected", None
        if refused:
            self._refused_at = {url: self._refused_at[url] for url in self.refused(now)} | {self.url: now}
            self.url = ""
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
        """Record that another program holds our name; return whether to join under another one."""
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
        """Record that the connection was closed in order to rejoin at once."""
        self.status, self._deadline, self._next_at = "disconnected", None, now

    def _retry(self, now: float) -> None:
        self._next_at = now + self._spread(RETRY_DELAYS_S[min(self._failures, len(RETRY_DELAYS_S) - 1)])
        self._failures += 1
        if self._failures >= LOOK_AGAIN_AFTER:
            self.url = ""

    def _spread(self, seconds: float) -> float:
        return seconds * self._rng.uniform(1 - SPREAD, 1 + SPREAD)
