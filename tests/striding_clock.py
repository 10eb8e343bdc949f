"""A clock for whole days of a life in one process: whoever sleeps takes the time along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime

from common.clock import FakeClock

Work = Callable[[], Coroutine[object, object, object]]

_LONGEST_S = 0.5
"""So long, of the machine's time, a sleeper lets go on what may itself wait for the sleeper."""

_is_beside: ContextVar[bool] = ContextVar("is_beside", default=False)


class StridingClock(FakeClock):
    """A life at its true pace, in no time. Only one of those who share it may be busy at once."""

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__(start)
        self._work: Work | None = None
        self._task: asyncio.Task[object] | None = None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        if self._work and not _is_beside.get():
            await self._let_go_on(self._work)
        self.stride(seconds)

    def stride(self, seconds: float) -> None:
        """Move ahead; a negative step does nothing."""
        self.jump(max(0.0, seconds))
        self._mono += max(0.0, seconds)

    @asynccontextmanager
    async def beside(self, work: Work) -> AsyncIterator[None]:
        """Whoever sleeps meanwhile lets `work` be done first, each time: what somebody waits for can happen."""
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
