"""Limits on requests per hour, as on GitHub: one for each account, a lower one for clients without a token."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace

from common.clock import Clock

_WINDOW_S = 3600
_MINUTE_S = 60


@dataclass(frozen=True, slots=True)
class RateStanding:
    """How many requests were made, including this one. `reset` is in epoch seconds."""

    limit: int
    used: int
    reset: int

    @property
    def refused(self) -> bool:
        return self.used > self.limit

    def told(self) -> dict[str, int]:
        """Return the state in the format of the API."""
        used = min(self.used, self.limit)
        return {"limit": self.limit, "used": used, "remaining": self.limit - used, "reset": self.reset}

    def headers(self) -> dict[str, str]:
        """Return the `x-ratelimit-*` headers."""
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(max(0, self.limit - self.used)),
            "x-ratelimit-reset": str(self.reset),
            "x-ratelimit-used": str(min(self.used, self.limit)),
            "x-ratelimit-resource": "core",
        }


@dataclass(frozen=True, slots=True)
class Writes:
    """How many changes one account may make per minute and per hour: GitHub's secondary limit."""

    in_a_minute: int = 80
    in_an_hour: int = 500

    def at_speed(self, speed: float) -> Writes:
        """Return the limits of accounts that live `speed` times as fast: scaled numbers in the same windows."""
        return Writes(max(1, round(self.in_a_minute * speed)), max(1, round(self.in_an_hour * speed)))


class GitHubMeter:
    """Counts requests in windows of an hour that begin with their first one. Lives in memory.

    Changes have a limit of their own only if `writes` is given. `speed` scales the limits of requests and changes, for
    accounts that live so much faster.
    """

    def __init__(
        self, clock: Clock, *, known: int = 5000, unknown: int = 60, writes: Writes | None = None, speed: float = 1.0
    ) -> None:
        self._clock = clock
        self._writes = writes.at_speed(speed) if writes else None
        self._written: dict[str, deque[float]] = {}
        self._known = max(1, round(known * speed))
        self._unknown = max(1, round(unknown * speed))
        self._windows: dict[str, tuple[int, int]] = {}

    def count(self, login: str, address: str) -> RateStanding:
        """Count one more request by this account, or by this address if `login` is ""."""
        standing = self.standing(login, address)
        self._windows[_key(login, address)] = (standing.reset, standing.used + 1)
        return replace(standing, used=standing.used + 1)

    def write_wait(self, login: str) -> int:
        """Count one more change by this account; if it may not be made yet, return the seconds to wait, else 0."""
        if self._writes is None:
            return 0
        now = self._clock.now().timestamp()
        written = self._written.setdefault(login, deque())
        while written and written[0] <= now - _WINDOW_S:
            written.popleft()
        for most, window in ((self._writes.in_an_hour, _WINDOW_S), (self._writes.in_a_minute, _MINUTE_S)):
            recent = [at for at in written if at > now - window]
            if len(recent) >= most:
                return math.ceil(recent[0] + window - now)
        written.append(now)
        return 0

    def give_back(self, login: str, address: str) -> RateStanding:
        """Take back the last request by this account or address."""
        standing = self.standing(login, address)
        self._windows[_key(login, address)] = (standing.reset, max(0, standing.used - 1))
        return self.standing(login, address)

    def standing(self, login: str, address: str) -> RateStanding:
        """Return the state without counting a request."""
        now = self._clock.now().timestamp()
        reset, used = self._windows.get(_key(login, address), (0, 0))
        if reset <= now:
            reset, used = math.ceil(now + _WINDOW_S), 0
        return RateStanding(self._known if login else self._unknown, used, reset)


def _key(login: str, address: str) -> str:
    return f"@{login}" if login else address
