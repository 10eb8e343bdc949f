"""A clock for whole days of a life in one process: each sleep moves the time ahead."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import datetime

from common.clock import FakeClock

Work = Callable[[], Coroutine[object, object, object]]

_LONGEST_S = 0.5
"""The real time that a sleeper waits for tasks that may themselves wait for the sleeper."""

_STILL_S = 0.02
"""After this much real time without a move, a waiting sleeper may move the time."""

_is_beside: ContextVar[bool] = ContextVar("is_beside", default=False)
_driver: ContextVar[asyncio.Task[object] | None] = ContextVar("driver", default=None)


class StridingClock(FakeClock):
    """The true timing of a life without real delays. Only one of its users may be busy at once: see `alone`."""

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__(start)
        self._work: Work | None = None
        self._task: asyncio.Task[object] | None = None
        self._wakes: list[float] = []

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        if self._work and not _is_beside.get():
            await self._let_go_on(self._work)
        if _is_beside.get() or _driver.get() in {None, asyncio.current_task()}:
            self.stride(seconds)
        else:
            await self._go_along(seconds)

    async def _go_along(self, seconds: float) -> None:
        """Sleep while others move the time; if nobody does for a moment, the earliest sleeper moves it."""
        wake = self._mono + seconds
        self._wakes.append(wake)
        try:
            while self._mono < wake:
                before = self._mono
                await asyncio.sleep(_STILL_S)
                if self._mono == before and wake == min(self._wakes):
                    self.stride(wake - before)
        finally:
            self._wakes.remove(wake)

    def stride(self, seconds: float) -> None:
        """Move the time ahead; a negative step does nothing."""
        self.jump(max(0.0, seconds))
        self._mono += max(0.0, seconds)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let tasks started meanwhile follow the time instead of moving it.

        A task that polls each second would otherwise let days go by while a program runs.
        """
        token = _driver.set(asyncio.current_task())
        try:
            yield
        finally:
            _driver.reset(token)

    @asynccontextmanager
    async def beside(self, work: Work) -> AsyncIterator[None]:
        """Let each sleeper run `work` first, so that events that somebody waits for can happen."""
        self._work = work
        try:
            yield
        finally:
            self._work = None
            if task := self._task:
                self._task = None
                await task

    async def _let_go_on(self, work: Work) -> None:
        if self._task is None:
            self._task = asyncio.create_task(_beside(work))
        task = self._task
        await asyncio.wait({task}, timeout=_LONGEST_S)
        if task.done():
            self._task = None
            task.result()


async def _beside(work: Work) -> None:
    _is_beside.set(True)
    await work()
