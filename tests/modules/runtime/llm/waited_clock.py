"""A clock that counts the waits under a deadline."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.clock import FakeClock
from tests.patience import HANG_S


class WaitedClock(FakeClock):
    """Counts the waits under a deadline."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0
        self._another = asyncio.Event()

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[object]:
        async with super().timeout(seconds) as scope:
            self.waits += 1
            self._another.set()
            yield scope

    async def until(self, waits: int) -> None:
        """Return once `waits` waits have begun."""
        async with asyncio.timeout(HANG_S):
            while self.waits < waits:
                self._another.clear()
                await self._another.wait()
