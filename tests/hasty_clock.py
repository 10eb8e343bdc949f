"""Real time that a test hurries on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from common.clock import SystemClock

HASTE = 40


class HastyClock(SystemClock):
    """Real time that can be set ahead, and in which waiting costs one part in `haste`."""

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
    """Real time that the test sets ahead, for those who wait as well."""

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
        """Set it ahead again and again, a second each time, but only while somebody waits for it."""

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
