"""Waits of tests: for an event that must happen, never for a fixed time, so a busy machine changes no result."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from common.clock import FakeClock

T = TypeVar("T")
HANG_S = 120.0
"""Seconds that a test waits before it counts something as hung."""
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.001, 0.02


async def until(holds: Callable[[], object], within_s: float = HANG_S, *, what: str = "it") -> None:
    """Poll until `holds()`, which may be awaitable, is true; raise AssertionError after `within_s` seconds."""
    look_s = _FIRST_LOOK_S
    try:
        async with asyncio.timeout(within_s):
            while not (await found if inspect.isawaitable(found := holds()) else found):
                await asyncio.sleep(look_s)
                look_s = min(2 * look_s, _LONGEST_LOOK_S)
    except TimeoutError:
        raise AssertionError(f"{what} did not come within {within_s:g} s") from None


async def while_time_passes(clock: FakeClock, call: Awaitable[T]) -> T:
    """Return the result of a call that waits on `clock`, moving the clock to each moment that somebody sleeps for."""
    running = asyncio.ensure_future(call)
    while not running.done():
        await until(lambda: running.done() or clock._sleepers, what="an end, or a wait on the clock,")
        if not running.done():
            await clock.advance(clock._sleepers[0][0] - clock.monotonic())
    return running.result()
