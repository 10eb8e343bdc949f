"""What the service's answers say about our request budget and about its clock.

Lives in memory only: a new process starts with the full budget and learns the truth from the first answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from adapters.atproto.types import RateLimitStatus
from common.clock import Clock
from common.constants import ATPROTO_INITIAL_BUDGET, ATPROTO_LOW_BUDGET_THRESHOLD
from common.result import Err

_UNAVAILABLE = 503

logger = logging.getLogger(__name__)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait that a `retry-after` header asks for, in seconds or as a date; None without a usable one."""
    value = headers.get("retry-after", "").strip()
    if value.isdigit():
        return float(value)
    date = _http_date(value)
    return max(0.0, (date - now).total_seconds()) if date else None


def should_gate(remaining: int, reset_epoch: float, now: float) -> bool:
    """Whether to hold requests back: the budget is low and its window (`reset_epoch`, epoch seconds) has not passed."""
    return remaining < ATPROTO_LOW_BUDGET_THRESHOLD and now < reset_epoch


class RateBudget:
    """The request budget as the last answer told it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._remaining = ATPROTO_INITIAL_BUDGET
        self._limit = ATPROTO_INITIAL_BUDGET
        self._reset_at = 0.0
        self.skew_s: float | None = None

    @property
    def status(self) -> RateLimitStatus:
        return RateLimitStatus(self._remaining, self._limit, self._reset_at)

    @property
    def exhausted(self) -> bool:
        return self._remaining <= 0

    def observe_date(self, headers: Mapping[str, str]) -> None:
        """Learn how many seconds our clock is ahead of the service's."""
        if date := _http_date(headers.get("date", "")):
            self.skew_s = (self._clock.now() - date).total_seconds()

    def observe(self, headers: Mapping[str, str]) -> None:
        """Learn the budget from the headers of any answer, good or bad."""
        self._remaining = _whole(headers, "ratelimit-remaining", self._remaining)
        self._limit = _whole(headers, "ratelimit-limit", self._limit)
        self._reset_at = float(_whole(headers, "ratelimit-reset", int(self._reset_at)))

    def hold(self, seconds: float) -> None:
        """The service said to come back later than we care to wait: nothing leaves until then."""
        self._remaining = 0
        self._reset_at = self._clock.now().timestamp() + seconds

    def refusal(self) -> Err | None:
        """Why the next request must not leave; None if it may."""
        now = self._clock.now().timestamp()
        if not should_gate(self._remaining, self._reset_at, now):
            return None
        wait = self._reset_at - now
        message = f"Bluesky request budget is low ({self._remaining} of {self._limit}), skipping for {wait:.0f} s"
        logger.warning(message)
        return Err(message, kind="transient", status=_UNAVAILABLE, retry_after=wait)


def _whole(headers: Mapping[str, str], name: str, default: int) -> int:
    value = headers.get(name, "").strip()
    return int(value) if value.isdecimal() else default


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
