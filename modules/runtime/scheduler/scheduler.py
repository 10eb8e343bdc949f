"""Runs the loops: APScheduler keeps the time; timers and forced calls alike run a loop only by `run_guarded`.

A loop with `needs_idle` holds the attention lock from before its first wait until it is done, so only one of them runs
at a time. Nothing here survives a crash, and nothing needs to: the loops store what must survive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from common.clock import Clock, span
from common.constants import SECOND_MS
from common.errors import Fatal, MachineTrouble, StorageError, Transient
from modules.runtime.events import Event, Publish, discard
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome, get_timer_jitter

if TYPE_CHECKING:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler


IDLE = "idle"


class Attention:
    """The lock on the SOUL's attention. `mode` is `idle` or the name of the holder."""

    def __init__(self) -> None:
        self._takers = 0
        self._held = False
        self._first: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._wakes: dict[str, Callable[[], None]] = {}
        self.mode = IDLE

    @property
    def free(self) -> bool:
        """Whether nobody holds the lock or waits for it in `take`."""
        return not self._takers

    def when_free(self, name: str, wake: Callable[[], None]) -> None:
        """Call `wake` once, the next time the lock becomes free; for each name only the latest `wake` counts."""
        self._wakes[name] = wake

    @asynccontextmanager
    async def take(self, mode: str, *, first: bool = False) -> AsyncIterator[None]:
        """Hold the lock, after waiting for its holder; `first`: before all who do not come first.

        Taking it while `free` never waits.
        """
        self._takers += 1
        try:
            await self._turn(self._first if first else self._others)
            try:
                self.mode = mode
                yield
            finally:
                self._hand_on()
        finally:
            self._takers -= 1
            if self.free:
                self.mode = IDLE
                wakes, self._wakes = self._wakes, {}
                for wake in wakes.values():
                    wake()

    async def _turn(self, waiting: deque[asyncio.Future[None]]) -> None:
        if not self._held:
            self._held = True
            return
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._hand_on()
            raise

    def _hand_on(self) -> None:
        self._held = False
        while not self._held and (waiting := self._first or self._others):
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._held = True


CLOCK_WATCH_INTERVAL_MS = 5 * SECOND_MS
STOP_GRACE_S = 3.0
MIN_LOOP_INTERVAL_MS = 1 * SECOND_MS
"""Before jitter: loops of one interval would meet each time, and one could keep another from the attention lock."""
CLOCK_JUMP_TOLERANCE_S = 30.0


_BUSY_RETRY_S = 0.4


@dataclass(frozen=True, slots=True)
class LoopState:
    """The state of a loop, for status displays. Times are aware UTC; None if there is or was none."""

    name: str
    running: bool
    next_at: datetime | None
    last_ran_at: datetime | None
    last_outcome: str


@dataclass(frozen=True, slots=True)
class LoopsChanged(Event):
    """A loop started or ended, or its next time changed."""


class Scheduler:
    """Keeps the loops of one SOUL going until `stop`; `doomed` raises what must end the process.

    Publishes `LoopsChanged` whenever `states` has changed. A full disk makes only the run that meets it fail.
    """

    def __init__(
        self,
        loops: Sequence[Loop],
        *,
        agent_name: str,
        clock: Clock,
        journal: Journal,
        attention: Attention,
        social_only: bool = False,
        publish: Publish = discard,
    ) -> None:
        if len({loop.name for loop in loops}) < len(loops):
            raise ValueError("two loops have the same name")
        self._loops = {loop.name: loop for loop in loops if loop.social_only or not social_only}
        self._intervals = {
            name: get_timer_jitter(agent_name, name, max(MIN_LOOP_INTERVAL_MS, loop.interval_ms), loop.jitter) / 1000
            for name, loop in self._loops.items()
        }
        self._clock = clock
        self._journal = journal
        self.attention = attention
        self._publish = publish
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._last: dict[str, tuple[datetime, str]] = {}
        self._stopping = False
        self._in_trouble: set[str] = set()
        self._timer: AsyncIOScheduler | None = None
        self._watch: asyncio.Task[None] | None = None
        self._fatal: asyncio.Future[Fatal] = asyncio.get_running_loop().create_future()

    def describe_intervals(self, places: Mapping[str, str]) -> str:
        """Return how often loops run, each with what it looks at (`places`, by loop): `looks at Bluesky every 45 s`."""
        told = [f"{where} every {span(self._intervals[name])}" for name, where in places.items() if name in self._loops]
        return f"looks at {', at '.join(told)}" if told else ""

    async def start(self) -> None:
        """Start the timers of all loops, and run the loops with `at_start`, one after another."""
        from apscheduler.schedulers.asyncio import AsyncIOScheduler  # noqa: PLC0415 - only a living SOUL needs it

        if self._stopping:
            return
        self._timer = AsyncIOScheduler(timezone="UTC")
        for name, seconds in self._intervals.items():
            self._timer.add_job(
                self._tick,
                "interval",
                seconds=seconds,
                args=[name],
                id=name,
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )
        self._timer.start()
        self._watch = asyncio.create_task(self._watch_clock(), name="clock-watch")
        self._publish(LoopsChanged())
        for name, loop in self._loops.items():
            if loop.at_start and not self._stopping:
                await self.run_guarded(name)

    async def run_guarded(self, name: str) -> Outcome:
        """Run one loop now, unless it runs already, the attention that it needs is taken, or the SOUL is stopping."""
        loop = self._loops.get(name)
        if loop is None:
            return Outcome(ran=False, reason=f"there is no loop named {name} in this life")
        if self._stopping:
            return Outcome(ran=False, reason="stopping")
        if name in self._running:
            return Outcome(ran=False, reason=f"{name} is already running", next_in_s=_BUSY_RETRY_S)
        if loop.needs_idle and (busy := self._busy_with()):
            return Outcome(ran=False, reason=f"busy with {busy}", next_in_s=_BUSY_RETRY_S)
        task = asyncio.create_task(self._run(loop), name=f"loop:{name}")
        self._running[name] = task
        self._publish(LoopsChanged())
        try:
            outcome = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
            raise
        finally:
            if task.done():
                self._finished(name)
            else:
                task.add_done_callback(lambda _: self._finished(name))
        self._last[name] = (self._clock.now(), outcome.reason)
        self._publish(LoopsChanged())
        return outcome

    async def stop(self) -> None:
        """Let running loops finish for a moment, then cancel them. Takes at most `STOP_GRACE_S` + 1 s."""
        self._stopping = True
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.remove_all_jobs()  # NOTE(self): shutting it down now would cancel the loops that it started
        if self._watch is not None:
            self._watch.cancel()
        running = list(self._running.values())
        if running:
            _, late = await asyncio.wait(running, timeout=STOP_GRACE_S)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=1)
        if timer is not None:
            timer.shutdown(wait=False)
        self._publish(LoopsChanged())

    def doom(self, error: Fatal) -> None:
        """Record an error that must end this process; the first one counts."""
        if not self._fatal.done():
            self._fatal.set_result(error)

    async def doomed(self) -> None:
        """Wait for an error that must end this process, and raise it."""
        raise await asyncio.shield(self._fatal)

    def states(self) -> list[LoopState]:
        """Return the state of each loop."""
        return [self._state(name) for name in self._loops]

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        """Make a loop run after `seconds` instead of at its next time."""
        if self._timer is not None and name in self._loops:
            self._timer.modify_job(name, next_run_time=self._clock.now() + timedelta(seconds=seconds))

    async def _tick(self, name: str) -> None:
        try:
            outcome = await self.run_guarded(name)
        except asyncio.CancelledError:
            if self._stopping:
                return  # APScheduler logs as an error whatever a job raises
            raise
        if outcome.next_in_s is not None and not self._stopping:
            self.bring_forward(name, outcome.next_in_s)
            self._publish(LoopsChanged())

    async def _run(self, loop: Loop) -> Outcome:
        try:
            outcome = await self._run_and_report(loop)
        except MachineTrouble as error:
            self._tell_trouble(loop.name, error)
            return Outcome(ran=False, reason=str(error))
        except Fatal as error:
            self.doom(error)
            return Outcome(ran=False, reason=str(error))
        except Transient as error:
            # NOTE(self): even the journal can be briefly out of reach, when another program holds the file.
            return Outcome(ran=False, reason=str(error), next_in_s=error.retry_after)
        if loop.name in self._in_trouble:
            await self._tell_recovery(loop.name)
        return outcome

    def _tell_trouble(self, name: str, error: MachineTrouble) -> None:
        """Show the owner the error, once until the loop has run again: the journal cannot be written."""
        if name not in self._in_trouble:
            self._in_trouble.add(name)
            self._journal.show(Entry("error", name, f"{name}: {error}", line="error", reason=error.remedy))

    async def _tell_recovery(self, name: str) -> None:
        """Report that the loop works again, if the journal can be written."""
        with suppress(StorageError, Transient):  # the next run tries again
            await self._journal.record(Entry("life", name, f"{name}: works again", line="done"))
            self._in_trouble.discard(name)

    async def _run_and_report(self, loop: Loop) -> Outcome:
        try:
            if loop.needs_idle:
                async with self.attention.take(loop.name):
                    return await loop.run()
            return await loop.run()
        except Fatal:
            raise
        except Transient as error:
            await self._journal.record(Entry("error", loop.name, f"{loop.name}: {error}", line="warn"))
            return Outcome(ran=False, reason=str(error), next_in_s=error.retry_after)
        except Exception as error:
            summary = f"{loop.name} failed: {type(error).__name__}: {error}"
            await self._journal.record(Entry("error", loop.name, summary, line="error", data={"trace": _trace(error)}))
            return Outcome(ran=False, reason=summary)

    def _busy_with(self) -> str:
        """Return what holds the attention or is about to take it; "" if it is free."""
        taking = (name for name in self._running if self._loops[name].needs_idle)
        return next(taking, "" if self.attention.free else self.attention.mode)

    def _finished(self, name: str) -> None:
        self._running.pop(name, None)
        self._publish(LoopsChanged())

    def _state(self, name: str) -> LoopState:
        job = self._timer.get_job(name) if self._timer is not None else None
        last = self._last.get(name)
        return LoopState(
            name=name,
            running=name in self._running,
            next_at=job.next_run_time if job else None,
            last_ran_at=last[0] if last else None,
            last_outcome=last[1] if last else "",
        )

    async def _watch_clock(self) -> None:
        """Restart all timers when the wall clock jumps: if it is set back, they would wait for the old hour."""
        wall, mono = self._clock.now(), self._clock.monotonic()
        while True:
            await self._clock.sleep(CLOCK_WATCH_INTERVAL_MS / 1000)
            new_wall, new_mono = self._clock.now(), self._clock.monotonic()
            jump = (new_wall - wall).total_seconds() - (new_mono - mono)
            wall, mono = new_wall, new_mono
            if abs(jump) >= CLOCK_JUMP_TOLERANCE_S:
                await self.clock_jumped(jump)

    async def clock_jumped(self, seconds: float) -> None:
        """Restart every timer from now, because the wall clock moved by `seconds` on its own."""
        summary = f"The clock jumped {seconds:+.0f} s; all timers start anew from now"
        for name, interval in self._intervals.items():
            self.bring_forward(name, interval)
        await self._journal.record_or_show(Entry("life", "scheduler", summary, line="warn"))


def _trace(error: BaseException) -> str:
    import traceback  # noqa: PLC0415 - only after a failure

    return "".join(traceback.format_exception(error))[-4000:]
