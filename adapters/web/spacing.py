"""When a request to one service may leave: its budget, one call at a time, its requests a set time apart.

A write goes ahead of reads. A burst keeps its requests together, as when a text is read and written back. What an
answer says about the requests left and about how long to wait is kept too. Nothing survives a crash.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from adapters.web.client import Failure, is_well
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


class Permit:
    """Leave to send the requests of one call, or of one burst."""

    def __init__(self, spacing: RequestSpacing, *, burst: bool, sets_pace: bool = True) -> None:
        self._spacing = spacing
        self._burst = burst
        self._sets_pace = sets_pace
        self._begun = False
        self.open = True
        """Whether it is held: not before a burst goes on after a pause, nor after its end."""

    async def wait(self) -> None:
        """Wait until the next request may go out; within a burst only the first one waits."""
        if not (self._burst and self._begun):
            await self._spacing.until_due()

    def sent(self) -> None:
        """Note that a request goes out now."""
        self._begun = True
        self._spacing.sent(sets_pace=self._sets_pace)

    def begin_anew(self) -> None:
        """Let the next request wait as the first one did."""
        self._begun = False


class _Turns:
    """A lock that is handed on to whoever asked for it first, to those who go ahead before the others."""

    def __init__(self) -> None:
        self._is_taken = False
        self._asked = 0
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []

    async def take(self, *, ahead: bool = False) -> None:
        """Wait until it is this caller's turn."""
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._asked += 1
        heapq.heappush(self._waiting, (not ahead, self._asked, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand the turn on."""
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False


class RequestSpacing:
    """Hands out permits, to what goes ahead first. `spacing_s` is the least time between two requests, in seconds."""

    def __init__(self, clock: Clock, spacing_s: float) -> None:
        self._clock = clock
        self._spacing_s = spacing_s
        self._turns = _Turns()
        self._not_before = 0.0
        self._sent = 0
        self._burst: ContextVar[Permit | None] = ContextVar("burst", default=None)

    @asynccontextmanager
    async def permit(self, *, ahead: bool = False) -> AsyncIterator[Permit]:
        """Yield a permit for one call, `ahead` of those that are not; within a burst, the burst's own."""
        burst = self._burst.get()
        if burst and burst.open:
            yield burst
            return
        await self._turns.take(ahead=ahead)
        try:
            yield Permit(self, burst=False)
        finally:
            self._turns.give_back()

    @asynccontextmanager
    async def burst(self, *, sets_pace: bool = True) -> AsyncIterator[None]:
        """Keep one permit for all calls inside; the first waits as any does, the others do not.

        Without `sets_pace`, the next request after the burst need not wait for it. All limits hold.
        """
        held = self._burst.get()
        if held and held.open:
            yield
            return
        await self._turns.take()
        permit = Permit(self, burst=True, sets_pace=sets_pace)
        token = self._burst.set(permit)
        try:
            yield
        finally:
            is_held, permit.open = permit.open, False
            self._burst.reset(token)
            if is_held:
                self._turns.give_back()

    async def pause(self, seconds: float) -> None:
        """Let time pass. A burst lets others' requests leave meanwhile, and goes on once its turn comes again."""
        permit, sent = self._burst.get(), self._sent
        if permit is None or not permit.open:
            await self._clock.sleep(seconds)
            return
        permit.open = False
        self._turns.give_back()
        await self._clock.sleep(seconds)
        await self._turns.take()
        permit.open = True
        if self._sent != sent:
            permit.begin_anew()

    async def until_due(self) -> None:
        """Wait until the spacing since the request before has passed."""
        if (wait := self._not_before - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)

    def sent(self, *, sets_pace: bool) -> None:
        """Note that a request goes out now; with `sets_pace`, the next one waits out the spacing."""
        self._sent += 1
        if sets_pace:
            self._not_before = self._clock.monotonic() + self._spacing_s

    def defer(self, seconds: float) -> None:
        """Let no request leave for so many seconds; those that wait leave then."""
        self._not_before = max(self._not_before, self._clock.monotonic() + seconds)


class RequestGate:
    """What each request to one service passes.

    Args:
        clock: time for spacing and limits.
        rules: how the service tells its budget.
        spacing_s: the least number of seconds between two requests.
        write_block_reason: asked right before each write leaves: why it must not, or "".
        on_response: told of each request whether the service answered as one does that is well, and if not, how.

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
        """Raise `Failure` when the service is to be left alone."""
        if refusal := self.budget.refusal():
            raise Failure(refusal)

    async def admit(self, permit: Permit, *, write: bool) -> None:
        """Wait until a request may leave. Raises `Failure` for a write that must not."""
        await permit.wait()
        if write and (why := self._write_block_reason()):
            raise Failure(Err(why, kind="transient"))
        permit.sent()

    def report(self, status: int | None) -> None:
        """Tell whoever listens how the service answered; None: not at all."""
        if self._on_response:
            well = is_well(status)
            self._on_response(well, "" if well else "no answer" if status is None else f"HTTP {status}")
