"""Which waiting posts and messages are not to be looked at before a moment.

That lives in memory; a restart looks at all that waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from common.clock import Clock
from common.errors import BudgetExceeded, Transient
from modules.runtime.llm.types import Importance

_LONGEST_PUT_OFF_S = 1800.0
_LONGEST_ECONOMY_S = 3600.0


class Waits:
    """Times are seconds; `first_pause_s` is half of the pause after the first failure of a post, which then doubles."""

    def __init__(self, clock: Clock, first_pause_s: float) -> None:
        self._clock = clock
        self._first_pause_s = first_pause_s
        self._not_before: dict[str, float] = {}
        self._turns: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._economy: dict[Importance, float] = {}

    def is_due(self, uri: str, importance: Importance) -> bool:
        """Whether a post may be looked at now."""
        moments = (self._not_before.get(uri, 0), self._turns.get(uri, 0), self._economy.get(importance, 0))
        return max(moments) <= self._clock.monotonic()

    def let_wait(self, uri: str, seconds: float) -> None:
        """It is not the turn of this post yet; that is no failure."""
        self._turns[uri] = self._clock.monotonic() + seconds

    def put_off(self, uri: str, error: Transient) -> None:
        """The network or the model failed for this post: the next run begins with another."""
        failures = self._failures[uri] = self._failures.get(uri, 0) + 1
        pause_s = max(min(self._first_pause_s * 2**failures, _LONGEST_PUT_OFF_S), error.retry_after or 0)
        self._not_before[uri] = self._clock.monotonic() + pause_s

    def economize(self, importance: Importance, error: BudgetExceeded) -> float:
        """There is no budget for authors who matter as much; returns for how long they wait."""
        pause_s = min(error.retry_after or _LONGEST_ECONOMY_S, _LONGEST_ECONOMY_S)
        self._economy[importance] = self._clock.monotonic() + pause_s
        return pause_s

    def forget(self, uris: Iterable[str]) -> None:
        """These posts are settled."""
        for uri in uris:
            for known in (self._not_before, self._turns, self._failures):
                known.pop(uri, None)

    def next_turn_in_s(self) -> float | None:
        """Seconds until the first post that waits its turn may be looked at; None if none does."""
        now = self._clock.monotonic()
        return min((moment - now for moment in self._turns.values() if moment > now), default=None)
