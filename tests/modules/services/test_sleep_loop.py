"""Proves that a SOUL falls asleep only after it has looked, and that what it could not read keeps it awake."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.watch import SPENT, SleepWatch
from common.clock import FakeClock
from common.result import ApiResult, Err, Ok
from modules.runtime.scheduler.policy import Outcome
from modules.runtime.sleep_note import Figures, read_note
from modules.services.sleep import AwaitedNext, SleepLoop, judge

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Watched(SleepWatch):
    """The client of a watcher that accepts every SOUL; `asked` lists the methods of its requests."""

    asked: list[str] = field(default_factory=list)
    is_spent: bool = False

    async def _ask(self, method: str, body: Mapping[str, Any] | None = None, **_: Any) -> ApiResult[None]:
        self.asked.append(method)
        return Err("", "transient", status=SPENT) if self.is_spent and method == "PATCH" else Ok(None)


@dataclass
class Looks:
    """A scheduler whose loops all end with `outcome`."""

    outcome: Outcome

    async def run_guarded(self, name: str) -> Outcome:
        return self.outcome

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        raise AssertionError(f"{name} is not to be brought forward by {seconds} s")


async def nothing() -> AwaitedNext:
    return AwaitedNext()


async def figures() -> Figures:
    return Figures(0.25, "2026-05-02T00:00:00Z", 3)


def test_it_is_told_apart_when_somebody_else_waits_for_it_and_when_nobody_does() -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    thought = AwaitedNext(due=now + timedelta(hours=1), is_own=True)
    reminder = AwaitedNext(due=now + timedelta(hours=5))
    rest = judge({"thought": thought, "reminder": reminder}, now)
    assert (rest.wake_at, rest.promised_at) == (thought.due, reminder.due)
    assert judge({"thought": thought}, now).promised_at is None


def loop_of(
    memory: Path, watch: Watched, work: Callable[[], Awaitable[AwaitedNext]], put_off: list[datetime], *, is_read: bool
) -> SleepLoop:
    looks = Looks(Outcome(ran=is_read, reason="no answer"))
    return SleepLoop(
        parts={"work": work},
        looks=lambda: ["awareness"],
        figures=figures,
        put_off=put_off.append,
        awaited=dict,
        watch=watch,
        memory=memory,
        soul="rowan",
        did=lambda: "did:plc:rowan",
        runs=lambda: looks,
        clock=FakeClock(NOON),
    )


async def passes(loop: SleepLoop, seconds: float) -> None:
    assert isinstance(loop.clock, FakeClock)
    await loop.clock.advance(seconds)


@pytest.mark.parametrize("is_spent", [True, False])
async def test_where_the_dollars_of_all_are_used_one_that_is_awake_puts_its_own_thought_off_and_may_sleep(
    tmp_path: Path, *, is_spent: bool
) -> None:
    watch, put_off = Watched("http://127.0.0.1:1", "rowan", "its token", is_spent=is_spent), list[datetime]()

    async def thought() -> AwaitedNext:
        return AwaitedNext(due=put_off[-1] if put_off else NOON, is_own=True)

    loop = loop_of(tmp_path, watch, thought, put_off, is_read=True)
    await loop.run()
    assert put_off == ([NOON + timedelta(hours=1)] if is_spent else [])
    assert bool((await loop.rest()).reasons) is not is_spent


@pytest.mark.parametrize("is_read", [True, False])
async def test_what_could_not_be_read_keeps_it_awake(tmp_path: Path, *, is_read: bool) -> None:
    watch = Watched("http://127.0.0.1:1", "rowan", "its token")
    loop = loop_of(tmp_path, watch, nothing, [], is_read=is_read)
    begun = await loop.run()
    assert watch.asked == ["DELETE", "POST"], "another server may be behind: it looks itself at its next run"
    assert begun.next_in_s == 60, "a minute after the watcher looked, not after this run began"
    await passes(loop, 60)
    outcome = await loop.run()
    assert loop.asleep.is_set() is is_read
    assert watch.asked == ["DELETE", "POST", "PUT" if is_read else "DELETE"]
    assert (read_note(tmp_path) is not None) is is_read, "its own home says so, wherever the watcher is"
    note = read_note(tmp_path)
    assert note is None or note.figures == Figures(0.25, "2026-05-02T00:00:00Z", 3)
    assert is_read or outcome.reason == "awareness: no answer"


async def test_a_look_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    watch = Watched("http://127.0.0.1:1", "rowan", "its token")
    looks = Looks(Outcome(ran=False, reason="awareness is already running", next_in_s=0.4))
    loop = loop_of(tmp_path, watch, nothing, [], is_read=False)
    loop.runs = lambda: looks
    await loop.run()
    await passes(loop, 60)
    assert (await loop.run()).next_in_s == 0.4
    looks.outcome = Outcome(ran=True, reason="read")
    await loop.run()
    assert loop.asleep.is_set()
    assert watch.asked == ["DELETE", "POST", "PUT"]


async def test_where_what_it_awaits_changes_the_watcher_looks_anew_before_it_sleeps(tmp_path: Path) -> None:
    watch, places = Watched("http://127.0.0.1:1", "rowan", "its token"), ["/notifications"]
    loop = loop_of(tmp_path, watch, nothing, [], is_read=True)
    loop.awaited = lambda: {"github": tuple(places)}
    await loop.run()
    await passes(loop, 60)

    def noting() -> list[str]:
        places.append("/repos/acme/moss/issues")  # a workspace is noted in the last look
        return ["awareness"]

    loop.looks = noting
    await loop.run()
    loop.looks = lambda: ["awareness"]
    assert (await loop.run()).next_in_s == 60, "the state is stored anew"
    await passes(loop, 60)
    await loop.run()
    assert (loop.asleep.is_set(), watch.asked) == (True, ["DELETE", "POST", "DELETE", "POST", "PUT"])


async def test_the_minute_passes_while_it_is_still_busy(tmp_path: Path) -> None:
    watch, waiting = Watched("http://127.0.0.1:1", "rowan", "its token"), ["a post waits"]

    async def work() -> AwaitedNext:
        return AwaitedNext(waiting[0] if waiting else "")

    loop = loop_of(tmp_path, watch, work, [], is_read=True)
    for _ in range(2):
        assert (await loop.run()).reason == "a post waits"
        await passes(loop, 40)
    waiting.clear()
    await loop.run()
    assert (loop.asleep.is_set(), watch.asked) == (True, ["DELETE", "POST", "PATCH", "PATCH", "PUT"])
