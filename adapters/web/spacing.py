"""Decides when a request to one service may leave: its budget, one call at a time, a minimum time between requests.

The most urgent request goes first (`urgency`): what the owner waits for, then writes and what a turn waits for, then
background reads. A read that must leave at once does not wait for the spacing. A burst keeps its requests together, for
example when a text is read and written back. It also keeps what an answer says about the remaining requests and the
time to wait. Nothing is kept across a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import IntEnum
from typing import Any

from adapters.web.client import Failure, is_well
from common.clock import Clock
from common.result import Err

_UNAVAILABLE = 503

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """A request budget; `reset_at` is in epoch seconds, 0 until an answer has told it."""

    remaining: int
    limit: int
    reset_at: int


@dataclass(frozen=True, slots=True)
class BackOff:
    """The seconds for which a service must be left alone, and the reason."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class RateLimitRules:
    """The form in which one service reports its request budget.

    Attributes:
        service: its name, for messages.
        prefix: the prefix of the headers `…remaining`, `…limit` and `…reset`, in lower case.
        initial: how many requests are assumed to remain before the first answer.
        reserve: returns how many requests of a limit are kept back.
        resource: the value of the header `…resource` whose budget this is; "" if a service has one budget only.

    """

    service: str
    prefix: str
    initial: int
    reserve: Callable[[int], int]
    resource: str = ""


def effective_remaining(remaining: int, limit: int, reset_epoch: float, now: float) -> int:
    """Return how many requests remain: the whole limit once the window has passed; times in epoch seconds."""
    return limit if now >= reset_epoch else remaining


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait in seconds that a `retry-after` header asks for, as a number or a date; None without one."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    date = _http_date(value)
    return max(0.0, (date - now).total_seconds()) if date else None


class RequestBudget:
    """The request budget according to the last answer, and a hold if the service asked for one.

    `skew_s` is how many seconds our clock is ahead of the service's, None until an answer has told it.
    """

    def __init__(self, clock: Clock, rules: RateLimitRules) -> None:
        self._clock = clock
        self._rules = rules
        self._told = RateLimitStatus(rules.initial, rules.initial, 0)
        self._held_until = 0.0
        self.skew_s: float | None = None

    @property
    def status(self) -> RateLimitStatus:
        """The present budget: the whole limit again once its window has passed."""
        told = self._told
        now = self._clock.now().timestamp()
        left = effective_remaining(told.remaining, told.limit, told.reset_at, now)
        return RateLimitStatus(left, told.limit, told.reset_at)

    @property
    def exhausted(self) -> bool:
        """Whether the last answer said that no requests remain."""
        return self._told.remaining <= 0

    def observe(self, headers: Mapping[str, str]) -> None:
        """Update the budget from the headers of an answer, good or bad."""
        rules, told = self._rules, self._told
        if rules.resource and headers.get(f"{rules.prefix}resource", rules.resource) != rules.resource:
            return
        self._told = RateLimitStatus(
            remaining=_whole(headers, f"{rules.prefix}remaining", told.remaining),
            limit=_whole(headers, f"{rules.prefix}limit", told.limit),
            reset_at=_whole(headers, f"{rules.prefix}reset", told.reset_at),
        )

    def observe_date(self, headers: Mapping[str, str]) -> None:
        """Update `skew_s` from the date of an answer."""
        if date := _http_date(headers.get("date", "")):
            self.skew_s = (self._clock.now() - date).total_seconds()

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds, because the service asked to be left alone."""
        self._held_until = max(self._held_until, self._clock.monotonic() + seconds)

    def back_off(self) -> BackOff | None:
        """Return for how long and why nothing is sent; None while requests may leave."""
        status, service = self.status, self._rules.service
        held_s = self._held_until - self._clock.monotonic()
        window_s = status.reset_at - self._clock.now().timestamp()
        if held_s > 0:
            return BackOff(held_s, f"{service} asked us to wait")
        if window_s > 0 and status.remaining < self._rules.reserve(status.limit):
            return BackOff(window_s, f"{service}'s request budget is low ({status.remaining} of {status.limit})")
        return None

    def refusal(self) -> Err | None:
        """Return why the next request must not leave; None if it may."""
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


class Urgency(IntEnum):
    """The urgency of a request; the lowest value goes first.

    AT_ONCE: the owner, an act on its way, the start or the end waits for it. AHEAD: a turn waits for it. BACKGROUND:
    nothing waits for it.
    """

    AT_ONCE = 0
    AHEAD = 1
    BACKGROUND = 2


_URGENCY: ContextVar[Urgency] = ContextVar("urgency", default=Urgency.BACKGROUND)


@contextmanager
def urgency(of: Urgency) -> Iterator[None]:
    """Give all requests inside the block this urgency, unless they already have a higher one."""
    token = _URGENCY.set(min(of, _URGENCY.get()))
    try:
        yield
    finally:
        _URGENCY.reset(token)


class Permit:
    """Permission to send the requests of one call, or of one burst."""

    def __init__(self, spacing: RequestSpacing, *, burst: bool, spaced: bool, sets_pace: bool) -> None:
        self._spacing = spacing
        self._burst = burst
        self._spaced = spaced
        self._sets_pace = sets_pace
        self._begun = False
        self.open = True
        """Whether it may be used: False while a burst is paused, and after its end."""

    async def wait(self) -> None:
        """Wait until the next request may leave; within a burst only the first one waits."""
        if not (self._burst and self._begun):
            await self._spacing.until_due(spaced=self._spaced)

    def sent(self) -> None:
        """Record that a request leaves now."""
        self._begun = True
        self._spacing.sent(sets_pace=self._sets_pace)

    def begin_anew(self) -> None:
        """Make the next request wait as the first one did."""
        self._begun = False


class _Turns:
    """A lock that goes to the most urgent caller that is due, and among equals to the first.

    After an unspaced request, a spaced one that is due and not in the background goes first, so it never waits longer
    than the spacing and one request. `wait_s` returns the seconds until a request may leave, spaced (True) or not.
    """

    def __init__(self, wait_s: Callable[[bool], float], sleep: Callable[[float], Coroutine[Any, Any, None]]) -> None:
        self._wait_s = wait_s
        self._sleep = sleep
        self._is_taken = False
        self._was_spaced = True
        self._asked = 0
        self._waiting: list[tuple[Urgency, int, bool, asyncio.Future[None]]] = []
        self._alarm: asyncio.Task[None] | None = None

    async def take(self, urgency: Urgency, *, spaced: bool) -> None:
        """Wait until this caller gets the lock and is due."""
        turn = asyncio.get_running_loop().create_future()
        self._asked += 1
        self._waiting.append((urgency, self._asked, spaced, turn))
        self._hand_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Release the lock for the next caller."""
        self._is_taken = False
        self._hand_on()

    def _hand_on(self) -> None:
        self._waiting = [one for one in self._waiting if not one[-1].done()]
        if self._is_taken or not self._waiting:
            return
        waits = {spaced: max(0.0, self._wait_s(spaced)) for spaced in (True, False)}
        _, _, spaced, turn = min(
            self._waiting,
            key=lambda one: (waits[one[2]], self._was_spaced or not one[2] or one[0] is Urgency.BACKGROUND, one[:2]),
        )
        if not waits[spaced]:
            self._is_taken, self._was_spaced = True, spaced
            turn.set_result(None)
            return
        if self._alarm:
            self._alarm.cancel()
        self._alarm = asyncio.create_task(self._sleep(waits[spaced]), name="request-spacing")
        self._alarm.add_done_callback(lambda alarm: None if alarm.cancelled() else self._hand_on())


class RequestSpacing:
    """Gives out permits, the most urgent first. `spacing_s` is the least time between two requests, in seconds."""

    def __init__(self, clock: Clock, spacing_s: float) -> None:
        self._clock = clock
        self._spacing_s = spacing_s
        self._turns = _Turns(self._wait_s, self._sleep)
        self._not_before = 0.0
        self._deferred_until = 0.0
        self._slept_until = 0.0
        self._sent = 0
        self._burst: ContextVar[Permit | None] = ContextVar("burst", default=None)

    @asynccontextmanager
    async def permit(self, *, write: bool = False) -> AsyncIterator[Permit]:
        """Yield a permit for one call; within a burst, the burst's permit. A `write` goes ahead of background reads."""
        burst = self._burst.get()
        if burst and burst.open:
            yield burst
            return
        asks = _URGENCY.get()
        spaced = write or asks is not Urgency.AT_ONCE
        await self._turns.take(min(asks, Urgency.AHEAD) if write else asks, spaced=spaced)
        try:
            yield Permit(self, burst=False, spaced=spaced, sets_pace=spaced)
        finally:
            self._turns.give_back()

    @asynccontextmanager
    async def burst(self, *, sets_pace: bool = True) -> AsyncIterator[None]:
        """Keep one permit for all calls inside the block; the first waits as any does, the others do not.

        Without `sets_pace`, the next request after the burst does not wait for the spacing. All limits apply.
        """
        held = self._burst.get()
        if held and held.open:
            yield
            return
        spaced = await self._take_burst()
        permit = Permit(self, burst=True, spaced=spaced, sets_pace=sets_pace and spaced)
        token = self._burst.set(permit)
        try:
            yield
        finally:
            is_held, permit.open = permit.open, False
            self._burst.reset(token)
            if is_held:
                self._turns.give_back()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`. A burst lets other requests leave meanwhile, and continues once it has the lock again."""
        permit, sent = self._burst.get(), self._sent
        if permit is None or not permit.open:
            await self._clock.sleep(seconds)
            return
        permit.open = False
        self._turns.give_back()
        await self._clock.sleep(seconds)
        await self._take_burst()
        permit.open = True
        if self._sent != sent:
            permit.begin_anew()

    async def until_due(self, *, spaced: bool) -> None:
        """Wait until the next request may leave: after the spacing if it is `spaced`, and after any `defer`."""
        if (wait := self._wait_s(spaced)) > 0:
            await self._sleep(wait)

    def sent(self, *, sets_pace: bool) -> None:
        """Record that a request leaves now; with `sets_pace`, the next spaced one waits for the spacing."""
        self._sent += 1
        if sets_pace:
            self._not_before = self._clock.monotonic() + self._spacing_s

    def defer(self, seconds: float) -> None:
        """Hold back all requests for so many seconds."""
        self._deferred_until = max(self._deferred_until, self._clock.monotonic() + seconds)

    async def _take_burst(self) -> bool:
        """Take the lock for a burst; return whether its first request waits for the spacing."""
        asks = _URGENCY.get()
        spaced = asks is not Urgency.AT_ONCE
        await self._turns.take(asks, spaced=spaced)
        return spaced

    def _wait_s(self, spaced: bool) -> float:  # noqa: FBT001 - called by position
        due = max(self._deferred_until, self._not_before if spaced else 0.0)
        return due - max(self._clock.monotonic(), self._slept_until)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, and treat the moment as reached even if the clock of a test shows an earlier time."""
        end = max(self._clock.monotonic(), self._slept_until) + seconds
        await self._clock.sleep(seconds)
        self._slept_until = max(self._slept_until, end)


class RequestGate:
    """The checks that each request to one service passes.

    Args:
        clock: time for spacing and limits.
        rules: how the service reports its budget.
        spacing_s: the least number of seconds between two requests.
        write_block_reason: called right before each write leaves; returns why it must not leave, or "".
        on_response: called after each request with whether the service works, and if not, what it answered.

    """

    def __init__(
        self,
        *,
        clock: Clock,
        rules: RateLimitRules,
        spacing_s: float,
        write_block_reason: Callable[[], str],
        on_response: Callable[[bool, str], None] | None,
    ) -> None:
        self.budget = RequestBudget(clock, rules)
        self.spacing = RequestSpacing(clock, spacing_s)
        self._write_block_reason = write_block_reason
        self._on_response = on_response

    def check_budget(self) -> None:
        """Raise `Failure` if the service must be left alone."""
        if refusal := self.budget.refusal():
            raise Failure(refusal)

    async def admit(self, permit: Permit, *, write: bool) -> None:
        """Wait until a request may leave. Raises `Failure` for a write that must not leave."""
        await permit.wait()
        if write and (why := self._write_block_reason()):
            raise Failure(Err(why, kind="transient"))
        permit.sent()

    def report(self, status: int | None) -> None:
        """Pass the status of an answer to `on_response`; None: there was no answer."""
        if self._on_response:
            well = is_well(status)
            self._on_response(well, "" if well else "no answer" if status is None else f"HTTP {status}")
