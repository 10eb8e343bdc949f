"""A clock for whole days of a life in one process: whoever sleeps takes the time along."""

from __future__ import annotations

import asyncio

from common.clock import FakeClock


class StridingClock(FakeClock):
    """A life at its true pace, in no time. Only one of those who share it may be busy at once."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.stride(seconds)

    def stride(self, seconds: float) -> None:
        """Move ahead; a negative step does nothing."""
        self.jump(max(0.0, seconds))
        self._mono += max(0.0, seconds)
