"""Time, passed in. `FakeClock` is part of the product: with it a test runs through a day without waiting."""

from __future__ import annotations

import heapq
import os
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    import asyncio

Span = TypeVar("Span", float, timedelta)
Since = Callable[[datetime], timedelta]
"""Returns how much was lived since a moment, as `Clock.since` does; for rules."""

_MINUTE_S, _HOUR_S = 60, 3600
_HOURS_TOLD = 48
_DAY_HOURS = 24
_MOST_DOUBLINGS = 20
_MOST_AHEAD = 10_000
_THREADED_STEPS = 200
"""How many times, in one step of a `FakeClock`, work may follow other work in a thread."""
_THREAD_S = 1.0
"""How long, in real time, a `FakeClock` waits for work in a thread that may itself wait for the clock."""


class Clock(ABC):
    """The time functions of the program.

    The first four use true time, that of the world: services, deadlines and stored data follow it. A life may go faster
    (`ScaledClock`). Its own waits and limits are written in lived time: `real` converts them to true time, `since`
    tells how much was lived since a moment.
    """

    _speed: float = 1.0
    _ahead: OrderedDict[datetime, float] | None = None

    @abstractmethod
    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""

    @abstractmethod
    def monotonic(self) -> float:
        """Return seconds that never run backwards; only differences are meaningful."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait; zero or less only yields to other tasks."""

    @abstractmethod
    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Raise `TimeoutError` if the body has not ended after `seconds`."""

    def real(self, span: Span) -> Span:
        """Return the true time that a lived `span` takes."""
        return span / self._speed

    def lived(self, span: Span) -> Span:
        """Return how much is lived in a true `span`."""
        return span * self._speed

    def since(self, moment: datetime) -> timedelta:
        """Return how much was lived since `moment`, never less than zero.

        A moment in the future was written by a clock that was ahead, ours or another machine's. It counts as the moment
        when this was first called for it, so that nothing waits for a wrong time to come.
        """
        passed = self.now() - moment
        if passed >= timedelta(0):
            return self.lived(passed)
        if self._ahead is None:
            self._ahead = OrderedDict()
        first = self._ahead.setdefault(moment, self.monotonic())
        if len(self._ahead) > _MOST_AHEAD:
            self._ahead.popitem(last=False)
        return self.lived(timedelta(seconds=self.monotonic() - first))

    @property
    def keeps_hours(self) -> bool:
        """Whether a day of this life is a day of the world, so that it has a night."""
        return self._speed == 1


class SystemClock(Clock):
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - takes time to load; a command that only reads the time does not need it

        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        import asyncio  # noqa: PLC0415 - the same

        return asyncio.timeout(seconds)


class ScaledClock(Clock):
    """The time of `clock` for a life that runs `speed` times as fast, which must be above 0."""

    def __init__(self, clock: Clock, speed: float) -> None:
        if speed <= 0:
            message = f"speed must be above 0, not {speed}"
            raise ValueError(message)
        self._clock = clock
        self._speed = speed

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return self._clock.timeout(seconds)


class FakeClock(Clock):
    """A clock that moves only when `advance` is called; sleepers wake in order."""

    def __init__(self, start: datetime | None = None) -> None:
        self._wall = (start or datetime(2026, 1, 5, 12, 0, tzinfo=UTC)).timestamp()
        self._mono = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._deadlines: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._wall, UTC)

    def monotonic(self) -> float:
        return self._mono

    async def sleep(self, seconds: float) -> None:
        import asyncio  # noqa: PLC0415 - the same

        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._alarm(self._sleepers, seconds)

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[object]:
        import asyncio  # noqa: PLC0415 - the same

        entered = True

        def expire(alarm: asyncio.Future[None]) -> None:
            if entered and not alarm.cancelled():
                scope.reschedule(0)

        async with asyncio.timeout(None) as scope:
            alarm = self._alarm(self._deadlines, seconds)
            alarm.add_done_callback(expire)
            try:
                yield scope
            finally:
                entered = False
                alarm.cancel()

    def _alarm(self, waiting: list[tuple[float, int, asyncio.Future[None]]], seconds: float) -> asyncio.Future[None]:
        """Return a future that is done once `seconds` have passed."""
        import asyncio  # noqa: PLC0415 - the same

        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(waiting, (self._mono + seconds, self._count, future))
        return future

    async def advance(self, seconds: float) -> None:
        """Move `seconds` ahead; wake each sleeper and end each `timeout` at its own moment."""
        end = self._mono + seconds
        await self._settle()
        while waiting := [heap for heap in (self._sleepers, self._deadlines) if heap and heap[0][0] <= end]:
            due, _, future = heapq.heappop(min(waiting, key=lambda heap: heap[0][:2]))
            self._wall += due - self._mono
            self._mono = due
            if not future.done():
                future.set_result(None)
            await self._settle()
        self._wall += end - self._mono
        self._mono = end

    def jump(self, seconds: float) -> None:
        """Move the wall clock ahead or back, as an operator or NTP would; monotonic time does not change."""
        self._wall += seconds

    @staticmethod
    async def _settle() -> None:
        """Let everything run that can: tasks and, if the loop tracks it (`unfinished`), the work of its threads."""
        import asyncio  # noqa: PLC0415 - the same

        unfinished: set[asyncio.Future[object]] = getattr(asyncio.get_running_loop(), "unfinished", set())
        for _ in range(_THREADED_STEPS):
            for _ in range(20):
                await asyncio.sleep(0)
            if not unfinished:
                return
            done, _ = await asyncio.wait(set(unfinished), timeout=_THREAD_S, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return


def iso(moment: datetime) -> str:
    """Return a moment as ISO-8601 in UTC with milliseconds and `Z`: `2026-01-05T12:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_iso(text: str) -> datetime:
    """Parse the output of `iso`, or any other offset; a time without one is in UTC. Raises `ValueError`."""
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_iso_or_none(value: object) -> datetime | None:
    """Parse an untrusted value like `parse_iso`; None if it is not text or not a time."""
    try:
        return parse_iso(value) if isinstance(value, str) else None
    except ValueError:
        return None


def local(moment: datetime, timezone: str = "") -> datetime:
    """Return `moment` in the named IANA time zone, or in the machine's own if the name is empty."""
    return moment.astimezone(ZoneInfo(timezone) if timezone else None)


def from_local(moment: datetime, timezone: str = "") -> datetime:
    """Return the UTC moment of a date and time without a zone, in the time zone of `local`."""
    return (moment.replace(tzinfo=ZoneInfo(timezone)) if timezone else moment.astimezone()).astimezone(UTC)


def parse_local_or_none(text: str, timezone: str = "") -> datetime | None:
    """Parse a date or a time that a model or a person gave; without an offset, it is in the time zone of `local`."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment if moment.tzinfo else from_local(moment, timezone)
    except (ValueError, OverflowError):
        return None


def is_timezone(name: str) -> bool:
    """Return whether `local` knows this time zone."""
    try:
        ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def machine_timezone() -> str:
    """Return the IANA name of this process's time zone; "" if it has no name."""
    link = Path("/etc/localtime")
    named = os.environ.get("TZ", "").removeprefix(":")
    name = named or (str(link.resolve()).partition("zoneinfo/")[2] if link.exists() else "")
    return name if name and is_timezone(name) else ""


def doubled(first: float, times: int, most: float) -> float:
    """Return `first` doubled `times` times, but at most `most`; `times` may be any number."""
    return min(first * 2.0 ** min(times, _MOST_DOUBLINGS), most)


def seldom_s(unchanged: timedelta, least: float, most: float) -> float:
    """Return the seconds until the next look at what was unchanged for so long: a tenth of it, in these bounds."""
    return min(max(unchanged.total_seconds() / 10, least), most)


def spoken(moment: datetime) -> str:
    """Return a date and time in words: `Monday 5 January 2026, 12:00`."""
    return f"{moment:%A} {moment.day} {moment:%B %Y, %H:%M}"


def spoken_ahead(moment: datetime, now: datetime) -> str:
    """Return `moment` like `spoken`, with the time until it from the minute of `now`: a model is told no seconds."""
    ahead = (moment - now.replace(second=0, microsecond=0)).total_seconds()
    return spoken(moment) + (f" (in {span(ahead)})" if ahead > 0 else "")


def age(since: datetime, now: datetime) -> str:
    """Return how long ago something was: `now`, `12 min`, `3 h`, `2 d`. A moment in the future gives `now`."""
    minutes = int((now - since).total_seconds() // _MINUTE_S)
    if minutes < 1:
        return "now"
    if minutes < _HOUR_S // _MINUTE_S:
        return f"{minutes} min"
    hours = minutes * _MINUTE_S // _HOUR_S
    return f"{hours} h" if hours < _HOURS_TOLD else f"{hours // _DAY_HOURS} d"


def span(seconds: float) -> str:
    """Return a duration in words: `12 s`, `5 min`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{round(whole / _MINUTE_S)} min"
    hours, minutes = divmod(round(whole / _MINUTE_S), _MINUTE_S)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
