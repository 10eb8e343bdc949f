"""One mind, one thing at a time: the lock that a loop holds from before its first wait until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

IDLE = "idle"


class Attention:
    """Who has the SOUL's attention. `mode` is `idle` or the name of what holds it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self.mode = IDLE

    @property
    def free(self) -> bool:
        return not self._lock.locked()

    @asynccontextmanager
    async def take(self, mode: str) -> AsyncIterator[None]:
        """Hold it, waiting for whoever has it. Taking it while `free` never waits."""
        async with self._lock:
            self.mode = mode
            try:
                yield
            finally:
                self.mode = IDLE
