"""Proves that loops run when they should, one at a time where they need the SOUL's attention, and stop when asked.

The rhythm of a SOUL is computed from its name, and is the same on every machine.
"""

import asyncio
import sqlite3
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock, SystemClock
from common.errors import Fatal, IdentityError, Transient
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import (
    Outcome,
    awareness_skip_probability,
    get_agent_jitter,
    get_peer_delay,
    get_timer_jitter,
    is_quiet_hours,
)
from modules.runtime.scheduler.scheduler import MIN_LOOP_INTERVAL_MS, Attention, Scheduler
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
    """Let all tasks run as far as they can without time passing."""
    for _ in range(20):
        await asyncio.sleep(0)


async def done() -> Outcome:
    return Outcome(ran=True, reason="done")


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
    assert (await guard.run_guarded("slow")).reason == "slow is already running"
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


async def test_the_owner_gets_the_attention_next_and_nobody_loses_it_to_one_who_gave_up() -> None:
    attention, taken = Attention(), list[str]()
    ends = defaultdict[str, asyncio.Event](asyncio.Event)

    async def take(name: str, *, first: bool = False) -> None:
        async with attention.take(name, first=first):
            taken.append(attention.mode)
            await ends[name].wait()

    names = ("coder", "gave up", "mention", "owner", "owner again")
    tasks = {name: asyncio.create_task(take(name, first=name.startswith("owner"))) for name in names}
    await asyncio.sleep(0)
    tasks.pop("gave up").cancel()
    for name in names:
        ends[name].set()
    await asyncio.gather(*tasks.values())
    assert taken == ["coder", "owner", "owner again", "mention"]
    assert attention.free
    async with asyncio.timeout(HANG_S), attention.take("later"):
        assert attention.mode == "later"


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


async def test_stop_waits_for_what_can_finish_and_cancels_what_cannot_within_five_seconds(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    gate, begun = asyncio.Event(), asyncio.Semaphore(0)
    ended: list[str] = []

    async def quick() -> Outcome:
        begun.release()
        await gate.wait()
        ended.append("quick")
        return Outcome(ran=True, reason="")

    async def endless() -> Outcome:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("endless cancelled")
        return Outcome(ran=True, reason="")

    guard = scheduler(journal, Sample("quick", quick), Sample("endless", endless))
    await guard.start()
    for name in ("quick", "endless"):
        guard.bring_forward(name)
        await asyncio.wait_for(begun.acquire(), HANG_S)
    stopping = asyncio.create_task(guard.stop())
    await settle()
    gate.set()
    await stopping
    assert ended == ["quick", "endless cancelled"]
    assert (await guard.run_guarded("quick")).reason == "stopping"
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


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


PEERS = ("ada.test", "kit.test", "wren.test")


@pytest.mark.parametrize(("name", "ms"), [("rebecca", 26035), ("sh-marvin", 85011), ("", 15000)])
def test_each_name_waits_its_own_time_before_speaking(name: str, ms: int) -> None:
    assert get_agent_jitter(name) == ms


@pytest.mark.parametrize(
    ("name", "timer", "base_ms", "pct", "ms"),
    [
        ("rebecca", "awareness", 45_000, 0.12, 45_081),
        ("marvin", "awareness", 45_000, 0.12, 39_676),
        ("marvin", "heartbeat", 300_000, 0.12, 319_044),
        ("peterben", "session-refresh", 900_000, 0.12, 823_968),
        ("marvin", "space-participation", 5_000, 0.40, 6_834),
        ("rebecca", "space-participation", 5_000, 0.40, 6_470),
    ],
)
def test_each_timer_of_each_name_has_its_own_interval(name: str, timer: str, base_ms: int, pct: float, ms: int) -> None:
    assert get_timer_jitter(name, timer, base_ms, pct) == ms


@given(st.text())
def test_a_name_in_any_script_waits_between_15_and_90_seconds(name: str) -> None:
    assert 15_000 <= get_agent_jitter(name) < 90_000


@given(name=st.text(), speed=st.sampled_from([2, 10, 60, 1000]))
def test_a_faster_life_waits_in_proportion(name: str, speed: int) -> None:
    fast = get_agent_jitter(name, minimum_ms=15_000 / speed, span_ms=75_000 / speed)
    assert fast == pytest.approx(get_agent_jitter(name) / speed, abs=1)


@given(
    names=st.lists(st.text(alphabet="abcdefgh.-", min_size=1, max_size=12), min_size=2, max_size=9, unique=True),
    root=st.text(max_size=40),
)
def test_peers_in_a_thread_speak_twenty_seconds_apart_in_an_order_that_all_of_them_reckon(
    names: list[str], root: str
) -> None:
    delays = [get_peer_delay(name, [one for one in names if one != name], root) for name in names]
    assert sorted(delays) == [15_000 + 20_000 * rank for rank in range(len(names))]


def test_nobody_goes_first_in_every_thread() -> None:
    first = {min(PEERS, key=lambda name: get_peer_delay(name, PEERS, f"at://a/b/{number}")) for number in range(20)}
    assert first == set(PEERS)


def test_capital_letters_and_a_name_given_twice_change_no_order() -> None:
    assert get_peer_delay("Ada.test", ["KIT.test", "kit.test", "ada.test"], "at://a") == get_peer_delay(
        "ada.test", ["kit.test"], "at://a"
    )
    assert get_peer_delay("ada.test", [], "at://a", first_ms=15, step_ms=20) == 15


@given(
    name=st.text(max_size=20),
    timer=st.text(max_size=20),
    base=st.floats(min_value=1, max_value=10**8),
    pct=st.sampled_from([0.0, 0.12, 0.4]),
)
def test_an_interval_stays_within_its_share(name: str, timer: str, base: float, pct: float) -> None:
    assert abs(get_timer_jitter(name, timer, base, pct) - base) <= base * pct + 1


@pytest.mark.parametrize(("hour", "quiet"), [(22, False), (23, True), (0, True), (6, True), (7, False), (12, False)])
def test_the_night_is_quiet_over_midnight(hour: int, quiet: bool) -> None:  # noqa: FBT001
    assert is_quiet_hours(hour) is quiet
    assert is_quiet_hours(hour, 23, 7) is quiet


@pytest.mark.parametrize(("hour", "quiet"), [(12, False), (13, True), (14, True), (15, False)])
def test_a_rest_within_the_day_is_quiet_too(hour: int, quiet: bool) -> None:  # noqa: FBT001
    assert is_quiet_hours(hour, 13, 15) is quiet


def test_equal_bounds_mean_no_quiet_hours() -> None:
    assert not any(is_quiet_hours(hour, 5, 5) for hour in range(24))


@pytest.mark.parametrize(
    ("errors", "probability"), [(0, 0), (1, 0), (2, 0), (3, 1 / 2), (4, 2 / 3), (9, 7 / 8), (10, 7 / 8), (1000, 7 / 8)]
)
def test_failures_in_a_row_make_looking_rarer_but_never_stop_it(errors: int, probability: float) -> None:
    assert awareness_skip_probability(errors) == pytest.approx(probability)
