"""Simulated time for a whole day in one process: the clock of the event loop moves only when nobody has work to do.

The server, the members, the model service, GitHub and all SOULs run in one loop and read the time from it. That loop
knows when all of them are idle: nothing is ready to run, no socket has data to read, no child process runs, and no
thread works. Then the time jumps to the next deadline, by at most one second per jump. Bytes sent over loopback are in
the reader's socket as soon as the write returns, so they are seen before the jump; if a machine ever delivers them
late, the answer arrives some simulated seconds later, which may happen in reality too.

All waits of the program are waits of the loop (`Clock.sleep`, deadlines, keepalive of sockets, servers that close idle
connections), so their proportions are kept. Only the real times that libraries record for themselves do not move
along; nothing here depends on them.
"""

import asyncio
import os
import selectors
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

from common.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = TypeVar("P", bound=asyncio.BaseProtocol)

MORNING = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)

_LONGEST_JUMP_S = 1.0
_LOOK_AT_THREADS_S = 0.05
_TURNS_OF_A_TICK = 6


class DayLoop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no real time. `jumps` counts how often the time moved on."""

    def __init__(self) -> None:
        self.moment = 0.0
        self.jumps = 0
        self.at_work = 0
        super().__init__(_Patience(self))

    def time(self) -> float:
        return self.moment

    def run_in_executor(
        self,
        executor: Any,
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Run a function in a thread; the simulated time stands still until it ends."""
        working = super().run_in_executor(executor, func, *args)
        self.at_work += 1
        working.add_done_callback(self._back)
        return working

    async def subprocess_exec(
        self, protocol_factory: Callable[[], P], program: Any, *args: Any, **kwargs: Any
    ) -> tuple[asyncio.SubprocessTransport, P]:
        """Start a child process, such as Git; the simulated time stands still until it ends."""

        def made() -> P:
            protocol = protocol_factory()
            assert isinstance(protocol, asyncio.SubprocessProtocol)
            tell = protocol.process_exited

            def process_exited() -> None:
                self.at_work -= 1
                tell()

            setattr(protocol, "process_exited", process_exited)  # noqa: B010 - a method
            return protocol

        self.at_work += 1
        try:
            return await super().subprocess_exec(made, program, *args, **kwargs)
        except OSError:
            self.at_work -= 1
            raise

    def _back(self, _: asyncio.Future[Any]) -> None:
        self.at_work -= 1


class DayClock(Clock):
    """The program's clock, driven by the loop: `MORNING` plus all time waited since."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now(self) -> datetime:
        return MORNING + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return 1000.0 + self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)

    async def until(self, seconds: float) -> None:
        """Wait until a moment of the day, in seconds since its beginning."""
        await self.sleep(seconds - self._loop.time())


class _Patience(selectors.DefaultSelector):
    """The selector of the loop: it checks sockets and threads, and lets the time jump when both are idle."""

    def __init__(self, day: DayLoop) -> None:
        super().__init__()
        self._day = day
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        while timeout is None or self._day.at_work:
            if ready := super().select(_LOOK_AT_THREADS_S):
                return ready
        if self._turns > _TURNS_OF_A_TICK:
            self._turns = 0
            os.sched_yield()
            if ready := super().select(0):
                return ready
        self._turns = 0
        self._day.moment += min(timeout, _LONGEST_JUMP_S)
        self._day.jumps += 1
        return []
