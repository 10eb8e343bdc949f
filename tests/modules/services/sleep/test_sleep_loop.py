"""Proves that a SOUL falls asleep only after it has looked, and that what it could not read keeps it awake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.watch.client import SleepWatch
from common.clock import FakeClock
from common.result import ApiResult, Ok
from modules.runtime.scheduler.types import Outcome
from modules.runtime.sleep_note import Figures, read_note
from modules.services.sleep.policy import AwaitedNext, judge
from modules.services.sleep.sleep import SleepLoop


@dataclass(frozen=True)
class Watched(SleepWatch):
    """A watcher that takes everybody; `asked` is what it was asked."""

    asked: list[str] = field(default_factory=list)

    async def _ask(self, method: str, body: Mapping[str, Any] | None = None, **_: Any) -> ApiResult[None]:
        self.asked.append(method)
        return Ok(None)


@dataclass
class Looks:
    """A scheduler whose loops all end so."""

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


@pytest.mark.parametrize("is_read", [True, False])
async def test_what_could_not_be_read_keeps_it_awake(tmp_path: Path, *, is_read: bool) -> None:
    watch, looks = Watched("http://127.0.0.1:1", "rowan", "its token"), Looks(Outcome(ran=is_read, reason="no answer"))
    clock = FakeClock(datetime(2026, 5, 1, 12, tzinfo=UTC))
    loop = SleepLoop(
        parts={"work": nothing},
        looks=lambda: ["awareness"],
        figures=figures,
        awaited=dict,
        watch=watch,
        memory=tmp_path,
        soul="rowan",
        did=lambda: "did:plc:rowan",
        runs=lambda: looks,
        clock=clock,
    )
    begun = await loop.run()
    assert watch.asked == ["DELETE", "POST"], "another server may be behind: it looks itself at its next run"
    assert begun.next_in_s == 60, "a minute after the watcher looked, not after this run began"
    outcome = await loop.run()
    assert loop.asleep.is_set() is is_read
    assert watch.asked == ["DELETE", "POST", "PUT" if is_read else "DELETE"]
    assert (read_note(tmp_path) is not None) is is_read, "its own home says so, wherever the watcher is"
    note = read_note(tmp_path)
    assert note is None or note.figures == Figures(0.25, "2026-05-02T00:00:00Z", 3)
    assert is_read or outcome.reason == "awareness: no answer"
