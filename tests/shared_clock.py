"""Time shared by several tasks over real sockets: it stands still while one of them works."""

import asyncio
import heapq
from collections.abc import Coroutine
from typing import TypeVar

from common.clock import FakeClock

T = TypeVar("T")


class SharedClock(FakeClock):
    """A clock that moves to the end of the next sleep once all its tasks wait, alone or in a server on their behalf.

    So real delays, such as an answer over a socket, take no time here. Its deadlines never pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._busy = 0

    async def together(self, *works: Coroutine[None, None, T]) -> list[T]:
        """Run these concurrently and return their results. None may wait for another by other means than this clock."""
        self._busy = len(works)
        return await asyncio.gather(*(self._counted(work) for work in works))

    async def sleep(self, seconds: float) -> None:
        alarm = self._alarm(self._sleepers, max(0.0, seconds))
        self._busy -= 1
        self._move_on()
        await alarm

    async def _counted(self, work: Coroutine[None, None, T]) -> T:
        try:
            return await work
        finally:
            self._busy -= 1
            self._move_on()

    def _move_on(self) -> None:
        if self._busy == 0 and self._sleepers:
            due, _, alarm = heapq.heappop(self._sleepers)
            self._wall += due - self._mono
            self._mono = due
            self._busy = 1
            alarm.set_result(None)
