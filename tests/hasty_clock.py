"""Clocks with real time that a test can speed up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from common.clock import SystemClock

HASTE = 40


class HastyClock(SystemClock):
    """Real time that can be set ahead, and in which each wait takes 1/`haste` of its length."""

    def __init__(self, haste: float = HASTE) -> None:
        self.ahead = 0.0
        self.haste = haste

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds) / self.haste)


class SetAhead(SystemClock):
    """Real time that the test sets ahead, also for tasks that already wait."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._asleep = 0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead

    async def sleep(self, seconds: float) -> None:
        end = self.monotonic() + seconds
        self._asleep += 1
        try:
            while self.monotonic() < end:  # noqa: ASYNC110 - the test moves the time
                await asyncio.sleep(0.01)
        finally:
            self._asleep -= 1

    @asynccontextmanager
    async def hurrying(self) -> AsyncIterator[None]:
        """Set the clock ahead again and again, by one second each, while at least one task waits for it."""

        async def hurry() -> None:
            while True:
                self.ahead += bool(self._asleep)
                await asyncio.sleep(0.01)

        running = asyncio.create_task(hurry())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
