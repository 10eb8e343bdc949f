"""One mind, one thing at a time: the lock that a loop holds from before its first wait until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

IDLE = "idle"


class Attention:
    """Who has the SOUL's attention. `mode` is `idle` or the name of what holds it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._takers = 0
        self._wakes: dict[str, Callable[[], None]] = {}
        self.mode = IDLE

    @property
    def free(self) -> bool:
        """Whether nobody holds it or waits in `take` for it."""
        return not self._takers

    def when_free(self, name: str, wake: Callable[[], None]) -> None:
        """Call `wake` once, as soon as it is free again; of several calls for one name the last counts."""
        self._wakes[name] = wake

    @asynccontextmanager
    async def take(self, mode: str) -> AsyncIterator[None]:
        """Hold it, waiting for whoever has it. Taking it while `free` never waits."""
        self._takers += 1
        try:
            async with self._lock:
                self.mode = mode
                yield
        finally:
            self._takers -= 1
            if self.free:
                self.mode = IDLE
                wakes, self._wakes = self._wakes, {}
                for wake in wakes.values():
                    wake()
