"""An event loop that knows which work of its threads is unfinished, for which `FakeClock` waits before it moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CountingLoop(asyncio.SelectorEventLoop):
    """The usual loop; `unfinished` holds a future for each piece of work that was handed to a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.unfinished: set[asyncio.Future[Any]] = set()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.unfinished.add(future)
        future.add_done_callback(self.unfinished.discard)
        return future
