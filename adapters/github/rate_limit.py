"""What GitHub's answers say about the requests that are left, and how long it wants to be left alone.

Lives in memory only: a new process starts with the full budget and learns the truth from the first answer. The headers
are the truth, as one token may serve several SOULs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from adapters.github.types import RateStatus
from common.clock import Clock
from common.constants import GITHUB_DEFAULT_RETRY_AFTER_S, GITHUB_LOW_BUDGET_THRESHOLD
from common.result import Err

_INITIAL_BUDGET = 5000
_UNAVAILABLE = 503
_TOO_MANY = 429
MAY_BE_HASTE = frozenset({403, _TOO_MANY})
"""The statuses by which GitHub says that we were too fast, among other things."""
_CORE = "core"
_LIMIT_WORDS = ("rate limit", "abuse detection")

logger = logging.getLogger(__name__)


def effective_remaining(remaining: int, limit: int, reset: int, now: float) -> int:
    """The requests that are left at `now`: the whole `limit` again once `reset` has passed (both in epoch seconds)."""
    return limit if now >= reset else remaining


def low_mark(limit: int) -> int:
    """Fewer requests left than this are kept for others; without a token, GitHub's own `limit` is lower than ours."""
    return min(GITHUB_LOW_BUDGET_THRESHOLD, limit // 10)


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait that a `retry-after` header asks for, in seconds or as a date; None without a usable one."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def limited_for_s(status: int, headers: Mapping[str, str], message: str, now: datetime) -> float | None:
    """Seconds to wait before another request after an answer that says we were too fast; None if it does not say so.

    Both of GitHub's limits are meant: the hour's, and the secondary ones, which answer 403 while requests are left.

    Args:
        status: of the answer.
        headers: of the answer, names in lower case.
        message: GitHub's own word for it.
        now: to turn dates into seconds.

    """
    if status not in MAY_BE_HASTE:
        return None
    asked = retry_after_s(headers, now)
    if asked is not None:
        return asked
    if headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = headers.get("x-ratelimit-reset", "").strip()
        return max(0.0, int(reset) - now.timestamp()) if reset.isdecimal() else GITHUB_DEFAULT_RETRY_AFTER_S
    said = any(words in message.lower() for words in _LIMIT_WORDS)
    return GITHUB_DEFAULT_RETRY_AFTER_S if status == _TOO_MANY or said else None


class RateBudget:
    """The hour's requests as the last answer told them, and a hold where GitHub asked for one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told = RateStatus(_INITIAL_BUDGET, _INITIAL_BUDGET, 0)
        self._held_until = 0.0

    @property
    def status(self) -> RateStatus:
        """What is left now."""
        told, now = self._told, self._clock.now().timestamp()
        remaining = effective_remaining(told.remaining, told.limit, told.reset_at, now)
        return RateStatus(remaining, told.limit, told.reset_at)

    def observe(self, headers: Mapping[str, str]) -> None:
        """Learn from the headers of any answer, good or bad. Other resources (search, …) have budgets of their own."""
        if headers.get("x-ratelimit-resource", _CORE) != _CORE:
            return
        told = self._told
        self._told = RateStatus(
            remaining=_whole(headers, "x-ratelimit-remaining", told.remaining),
            limit=_whole(headers, "x-ratelimit-limit", told.limit),
            reset_at=_whole(headers, "x-ratelimit-reset", told.reset_at),
        )

    def hold(self, seconds: float) -> None:
        """GitHub asked to be left alone that long: nothing leaves until then."""
        self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def refusal(self) -> Err | None:
        """Why the next request must not leave; None if it may."""
        status = self.status
        wait = self._held_until - self._clock.monotonic()
        if wait > 0:
            message = f"GitHub asked us to wait; nothing is sent for {wait:.0f} s"
        elif status.remaining < low_mark(status.limit):
            wait = max(0.0, status.reset_at - self._clock.now().timestamp())
            message = (
                f"GitHub's request budget is low ({status.remaining} of {status.limit}), skipping for {wait:.0f} s"
            )
        else:
            return None
        logger.warning(message)
        return Err(message, kind="transient", status=_UNAVAILABLE, retry_after=wait)


def _whole(headers: Mapping[str, str], name: str, default: int) -> int:
    value = headers.get(name, "").strip()
    return int(value) if value.isdecimal() else default
