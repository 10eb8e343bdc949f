"""What every test of an adapter asks of a result, and how it lets time pass meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import httpx

from common.clock import FakeClock
from common.result import ApiResult, Err, Ok
from tests.patience import HANG_S

T = TypeVar("T")
SOON_GONE = httpx.Timeout(HANG_S, read=0.1)
"""Only silence is not borne for long: to connect and to log in may take as long as a busy machine needs."""


async def while_time_passes(clock: FakeClock, call: Awaitable[T]) -> T:
    """Await a call that waits on the clock, moving the clock whenever it does."""
    running = asyncio.ensure_future(call)
    while not running.done():
        await asyncio.sleep(0.001)
        if clock._sleepers:
            await clock.advance(clock._sleepers[0][0] - clock.monotonic())
    return running.result()


def ok(result: ApiResult[T]) -> T:
    """The data of a result that must be good."""
    assert isinstance(result, Ok), result
    return result.data


def err(result: ApiResult[Any]) -> Err:
    """The failure of a result that must be bad."""
    assert isinstance(result, Err), result
    return result
