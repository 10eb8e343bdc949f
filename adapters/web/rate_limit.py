"""What a service's answers say about the requests that are left, how long it wants to be left alone, and its clock.

Lives in memory only: a new process starts with the full budget and learns the truth from the first answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from common.clock import Clock
from common.result import Err

_UNAVAILABLE = 503

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """A request budget; `reset_at` is in epoch seconds, 0 as long as no answer told it."""

    remaining: int
    limit: int
    reset_at: int


@dataclass(frozen=True, slots=True)
class BackOff:
    """That a service is to be left alone, for so many seconds, and why."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class RateLimitRules:
    """How one service tells its request budget.

    Attributes:
        service: its name, for messages.
        prefix: of the headers `…remaining`, `…limit` and `…reset`, in lower case.
        initial: the requests that are assumed to be left before the first answer.
        reserve: how many requests of a limit are kept back.
        resource: the value of the header `…resource` whose budget this is; "" where a service has one budget only.

    """

    service: str
    prefix: str
    initial: int
    reserve: Callable[[int], int]
    resource: str = ""


def effective_remaining(remaining: int, limit: int, reset_epoch: float, now: float) -> int:
    """Return the requests that are left: the whole limit again once its window has passed; times in epoch seconds."""
    return limit if now >= reset_epoch else remaining


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait in seconds that a `retry-after` header asks for, itself seconds or a date; None without one."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    date = _http_date(value)
    return max(0.0, (date - now).total_seconds()) if date else None


class RequestBudget:
    """The request budget as the last answer told it, and a hold where the service asked for one.

    `skew_s` is how many seconds our clock is ahead of the service's, None as long as no answer told it.
    """

    def __init__(self, clock: Clock, rules: RateLimitRules) -> None:
        self._clock = clock
        self._rules = rules
        self._told = RateLimitStatus(rules.initial, rules.initial, 0)
        self._held_until = 0.0
        self.skew_s: float | None = None

    @property
    def status(self) -> RateLimitStatus:
        """What is left now: the whole limit again once its window has passed."""
        told = self._told
        now = self._clock.now().timestamp()
        left = effective_remaining(told.remaining, told.limit, told.reset_at, now)
        return RateLimitStatus(left, told.limit, told.reset_at)

    @property
    def exhausted(self) -> bool:
        """Whether the last answer said that no request is left."""
        return self._told.remaining <= 0

    def observe(self, headers: Mapping[str, str]) -> None:
        """Learn the budget from the headers of any answer, good or bad."""
        rules, told = self._rules, self._told
        if rules.resource and headers.get(f"{rules.prefix}resource", rules.resource) != rules.resource:
            return
        self._told = RateLimitStatus(
            remaining=_whole(headers, f"{rules.prefix}remaining", told.remaining),
            limit=_whole(headers, f"{rules.prefix}limit", told.limit),
            reset_at=_whole(headers, f"{rules.prefix}reset", told.reset_at),
        )

    def observe_date(self, headers: Mapping[str, str]) -> None:
        """Learn how far our clock is ahead."""
        if date := _http_date(headers.get("date", "")):
            self.skew_s = (self._clock.now() - date).total_seconds()

    def hold(self, seconds: float) -> None:
        """Let nothing leave for so many seconds: the service asked to be left alone."""
        self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def back_off(self) -> BackOff | None:
        """Return how long and why nothing is sent, None while requests may leave."""
        status, service = self.status, self._rules.service
        held_s = self._held_until - self._clock.monotonic()
        window_s = status.reset_at - self._clock.now().timestamp()
        if held_s > 0:
            return BackOff(held_s, f"{service} asked us to wait")
        if window_s > 0 and status.remaining < self._rules.reserve(status.limit):
            return BackOff(window_s, f"{service}'s request budget is low ({status.remaining} of {status.limit})")
        return None

    def refusal(self) -> Err | None:
        """Return why the next request must not leave, None if it may."""
        if (wait := self.back_off()) is None:
            return None
        message = f"{wait.reason}; nothing is sent for {wait.seconds:.0f} s"
        logger.warning(message)
        return Err(message, kind="transient", status=_UNAVAILABLE, retry_after=wait.seconds)


def _whole(headers: Mapping[str, str], name: str, default: int) -> int:
    value = headers.get(name, "").strip()
    return int(value) if value.isdecimal() else default


def _http_date(value: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
