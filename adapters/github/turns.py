"""Who may speak to GitHub now: one call at a time, its requests a set time apart; within a burst, at once.

A burst is for what must not be torn apart, such as reading a text and writing it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from common.clock import Clock


class Turn:
    """Leave to send. `wait` before each request, `stamp` when it goes out."""

    def __init__(self, turns: Turns, *, burst: bool) -> None:
        self._turns = turns
        self._burst = burst
        self._begun = False
        self.open = True

    async def wait(self) -> None:
        """Until this request may go out."""
        if not (self._burst and self._begun):
            await self._turns.until_due()

    def stamp(self) -> None:
        """The request goes out now."""
        self._begun = True
        self._turns.count()


class Turns:
    """Hands out turns, in the order asked for. `spacing_s` is the least time between two requests, in seconds."""

    def __init__(self, clock: Clock, spacing_s: float) -> None:
        self._clock = clock
        self._spacing_s = spacing_s
        self._lock = asyncio.Lock()
        self._not_before = 0.0
        self._burst: ContextVar[Turn | None] = ContextVar("burst", default=None)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[Turn]:
        """A turn for one call; within a burst, the burst's own."""
        burst = self._burst.get()
        if burst and burst.open:
            yield burst
            return
        async with self._lock:
            yield Turn(self, burst=False)

    @asynccontextmanager
    async def burst(self) -> AsyncIterator[None]:
        """Keep the turn for all calls inside; the first waits as any does, the others do not."""
        held = self._burst.get()
        if held and held.open:
            yield
            return
        async with self._lock:
            turn = Turn(self, burst=True)
            token = self._burst.set(turn)
            try:
                yield
            finally:
                turn.open = False
                self._burst.reset(token)

    async def until_due(self) -> None:
        """Until the spacing since the request before has passed."""
        if (wait := self._not_before - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)

    def count(self) -> None:
        """A request goes out now."""
        self._not_before = self._clock.monotonic() + self._spacing_s
