"""How long a test waits before it calls something hung: no verdict on speed, so it bears a very busy machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HANG_S = 120.0
_LOOK_S = 0.01


async def until(holds: Callable[[], bool], within_s: float = HANG_S, *, what: str = "it") -> None:
    """Wait until `holds` does. For what happens elsewhere and tells nobody: else wait for an event."""
    try:
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise AssertionError(f"{what} did not come within {within_s:g} s") from None
