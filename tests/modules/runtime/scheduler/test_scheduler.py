"""Loops run when they should, one mind at a time, and stop when asked."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock, SystemClock
from common.errors import Fatal, IdentityError, Transient
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import get_timer_jitter
from modules.runtime.scheduler.scheduler import MIN_LOOP_INTERVAL_MS, Attention, Scheduler
from modules.runtime.scheduler.types import Outcome
from tests.patience import HANG_S, until


@dataclass
class Sample:
    """A loop that does what the test says."""

    name: str
    body: Callable[[], Awaitable[Outcome]]
    interval_ms: float = 50_000
    jitter: float = 0.0
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False
    runs: list[float] = field(default_factory=list)

    async def run(self) -> Outcome:
        self.runs.append(time.monotonic())
        return await self.body()


async def settle() -> None:
    """Let everybody go as far as they can get without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def done() -> Outcome:
    return Outcome(ran=True, reason="done")


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    yield Journal(database, SilentConsole(), SystemClock(), Redactor())
    await database.close()


def scheduler(journal: Journal, *loops: Sample, social_only: bool = False, clock: FakeClock | None = None) -> Scheduler:
    return Scheduler(
        loops,
        agent_name="marvin",
        clock=clock or SystemClock(),
        journal=journal,
        attention=Attention(),
        social_only=social_only,
    )


async def test_a_loop_that_runs_is_not_entered_again(journal: Journal) -> None:
    gate = asyncio.Event()

    async def wait() -> Outcome:
        await gate.wait()
        return Outcome(ran=True, reason="waited")

    guard = scheduler(journal, Sample("slow", wait))
    first = asyncio.create_task(guard.run_guarded("slow"))
    await asyncio.sleep(0)
    assert (await guard.run_guarded("slow")) == Outcome(ran=False, reason="slow is already running")
    gate.set()
    assert (await first).ran


async def test_two_loops_that_need_the_mind_never_overlap_even_while_one_only_waits(journal: Journal) -> None:
    gate = asyncio.Event()

    async def wait() -> Outcome:
        await gate.wait()
        return Outcome(ran=True, reason="waited")

    guard = scheduler(journal, Sample("one", wait, needs_idle=True), Sample("two", done, needs_idle=True))
    first = asyncio.create_task(guard.run_guarded("one"))
    await asyncio.sleep(0)
    kept_out = await guard.run_guarded("two")
    assert kept_out.reason == "busy with one"
    assert 0 < (kept_out.next_in_s or 0) < 1
    gate.set()
    await first
    assert (await guard.run_guarded("two")).ran
    assert guard.attention.mode == "idle"


async def test_a_failing_loop_is_journalled_and_frees_the_mind(journal: Journal) -> None:
    async def fail() -> Outcome:
        raise ValueError("a bug")

    guard = scheduler(journal, Sample("buggy", fail, needs_idle=True))
    assert (await guard.run_guarded("buggy")).reason == "buggy failed: ValueError: a bug"
    assert guard.attention.free
    assert "a bug" in (await journal.recent(1))[0].entry.data["trace"]


async def test_a_brief_trouble_asks_for_the_time_that_the_world_named(journal: Journal) -> None:
    async def busy() -> Outcome:
        raise Transient("rate limited", retry_after=30)

    guard = scheduler(journal, Sample("loop", busy))
    assert (await guard.run_guarded("loop")).next_in_s == 30


async def test_a_fatal_error_reaches_whoever_waits_for_the_end(journal: Journal) -> None:
    async def doom() -> Outcome:
        raise IdentityError("SOUL.md changed")

    guard = scheduler(journal, Sample("watch", doom))
    await guard.run_guarded("watch")
    with pytest.raises(Fatal, match=r"SOUL\.md changed"):
        await guard.doomed()


async def test_social_only_leaves_out_what_is_not_social(journal: Journal) -> None:
    guard = scheduler(journal, Sample("a", done), Sample("b", done, social_only=False), social_only=True)
    assert [state.name for state in guard.states()] == ["a"]
    assert not (await guard.run_guarded("b")).ran


async def test_timers_fire_and_an_outcome_can_ask_for_an_earlier_turn(journal: Journal) -> None:
    often = asyncio.Event()

    async def again() -> Outcome:
        if len(loop.runs) == 4:
            often.set()
        return Outcome(ran=True, reason="soon", next_in_s=0.05)

    loop = Sample("often", again, interval_ms=3_600_000, at_start=True)
    guard = scheduler(journal, loop)
    await guard.start()
    guard.bring_forward("often")
    await asyncio.wait_for(often.wait(), HANG_S)
    await guard.stop()


async def test_stop_waits_for_what_can_finish_and_cancels_what_cannot_within_five_seconds(journal: Journal) -> None:
    gate = asyncio.Event()
    ended: list[str] = []

    async def quick() -> Outcome:
        await gate.wait()
        ended.append("quick")
        return Outcome(ran=True, reason="")

    async def endless() -> Outcome:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless cancelled")
        return Outcome(ran=True, reason="")

    guard = scheduler(journal, Sample("quick", quick), Sample("endless", endless))
    runs = [asyncio.create_task(guard.run_guarded(name)) for name in ("quick", "endless")]
    await settle()
    stopping = asyncio.create_task(guard.stop())
    await settle()
    gate.set()
    await stopping
    assert ended == ["quick", "endless cancelled"]
    assert (await guard.run_guarded("quick")).reason == "stopping"
    await asyncio.gather(*runs, return_exceptions=True)


async def test_a_loop_that_a_timer_started_may_finish_when_the_life_stops(journal: Journal) -> None:
    begun, gate, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> Outcome:
        begun.set()
        await gate.wait()
        finished.set()
        return Outcome(ran=True, reason="")

    guard = scheduler(journal, Sample("by-timer", work, interval_ms=1000))
    await guard.start()
    await asyncio.wait_for(begun.wait(), HANG_S)
    stopping = asyncio.create_task(guard.stop())
    await settle()
    gate.set()
    await stopping
    assert finished.is_set()


async def test_a_clock_that_jumps_is_told_and_every_timer_starts_anew_from_the_new_time(journal: Journal) -> None:
    clock, jump = FakeClock(datetime.now(UTC)), 3600.0
    guard = scheduler(journal, Sample("hourly", done, interval_ms=60_000), clock=clock)
    await guard.start()
    await asyncio.sleep(0)
    clock.jump(jump)
    await clock.advance(5)
    await until(lambda: guard.states()[0].next_at == clock.now() + timedelta(seconds=60))
    assert f"The clock jumped {jump:+.0f} s" in (await journal.recent(1))[0].entry.summary
    await guard.stop()


async def test_every_timer_starts_anew_after_a_jump_that_the_journal_cannot_take(
    journal: Journal, tmp_path: Path
) -> None:
    clock = FakeClock(datetime.now(UTC))
    guard = scheduler(journal, Sample("hourly", done, interval_ms=60_000), clock=clock)
    await guard.start()
    await journal.record_with(lambda db: (db.execute("PRAGMA busy_timeout = 1").fetchone(), Entry("life", "test", "")))
    with closing(sqlite3.connect(tmp_path / "soul.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await guard.clock_jumped(-3600.0)
    assert guard.states()[0].next_at == clock.now() + timedelta(seconds=60)
    await guard.stop()


def test_intervals_are_told_in_one_line_with_this_name_s_own_rhythm(journal: Journal) -> None:
    async def make() -> str:
        return scheduler(journal, Sample("awareness", done, interval_ms=45_000, jitter=0.12)).describe_intervals(
            {"awareness": "Bluesky", "github-awareness": "GitHub"}
        )

    assert asyncio.run(make()) == "looks at Bluesky every 40 s"


def test_loops_of_the_shortest_interval_do_not_meet_at_each_of_their_runs() -> None:
    names = ("commitment-fulfillment", "github-experiences")
    first, second = (get_timer_jitter("rowan", name, MIN_LOOP_INTERVAL_MS, 0.12) for name in names)
    assert first != second
    assert min(first, second) > 800
