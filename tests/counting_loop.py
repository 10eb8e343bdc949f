"""An event loop that knows which calls in its threads are unfinished; `FakeClock` waits for these before it moves."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context
from threading import get_ident
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class CountingLoop(asyncio.SelectorEventLoop):
    """The usual loop. `unfinished` holds a future for each call in a thread that neither ended nor called the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.unfinished: set[asyncio.Future[None]] = set()
        self._by_thread: dict[int, asyncio.Future[None]] = {}

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        goes_on = self.create_future()
        self.unfinished.add(goes_on)
        goes_on.add_done_callback(self.unfinished.discard)

        def work(*given: *Ts) -> T:
            self._by_thread[get_ident()] = goes_on
            try:
                return func(*given)
            finally:
                self._by_thread.pop(get_ident(), None)

        future = super().run_in_executor(executor, work, *args)
        future.add_done_callback(lambda _: _end(goes_on))
        return future

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        if goes_on := self._by_thread.pop(get_ident(), None):  # from now on that thread may wait for the loop
            super().call_soon_threadsafe(_end, goes_on)
        return handle


def _end(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)
