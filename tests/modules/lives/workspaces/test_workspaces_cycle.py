"""The steps of a cycle: their order, what each is shown, and what ends a cycle or only one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.github.types import Issue, Repo
from common.clock import FakeClock
from common.errors import Transient
from common.redact import Redactor
from modules.lives.workspaces.loop import Cycle
from modules.lives.workspaces.policy import line_of
from modules.lives.workspaces.types import Place, Poll, PolledWorkspace, StepResult
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.workspaces.watched import WatchedWorkspace

CLOCK = FakeClock()
TIMES = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")


def workspace(name: str, *numbers: int, finished: int | None = None) -> PolledWorkspace:
    repo = Repo("acme", f"www-lil-intdev-{name}")
    issues = tuple(Issue(one, f"[PLAN] {one}", "", "open", "kit", ("plan",), (), "", *TIMES) for one in numbers)
    watched = WatchedWorkspace(
        owner=repo.owner, repo=repo.name, url="", discovered_at=CLOCK.now(), finished_issue_number=finished
    )
    plan = Plan("A counter", tasks=(Task(1, "Count"),))
    return PolledWorkspace(watched, issues, tuple(FoundPlan(repo, one, plan) for one in issues if finished is None))


POLL = Poll(CLOCK.now(), (workspace("site", 4, 5), workspace("done", 9, finished=9)))


@dataclass
class Noted:
    """A step that notes what it was shown."""

    name: str
    place: Place
    ran: list[str]
    acts: bool = False
    sees_finished: bool = False
    result: StepResult = field(default_factory=StepResult)
    error: Exception | None = None

    async def run(self, poll: Poll) -> StepResult:
        self.ran.append(f"{self.name}: {[plan.number for plan in poll.plans]} of {len(poll.workspaces)}")
        if self.error:
            raise self.error
        return self.result


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    yield Journal(database, SilentConsole(), CLOCK, Redactor())
    await database.close()


async def test_steps_run_in_their_order_and_later_ones_do_not_see_what_was_closed(journal: Journal) -> None:
    ran: list[str] = []
    closes = StepResult(closed=(("acme/www-lil-intdev-site", 5),), note="1 plan closed")
    steps = [
        Noted("claim", Place.CLAIM, ran),
        Noted("duplicates", Place.DUPLICATE_PLANS, ran, result=closes),
        Noted("sentinel", Place.SENTINEL, ran, sees_finished=True),
    ]
    report = await Cycle(steps, lambda: True, journal).run(POLL)
    assert ran == ["sentinel: [4, 5] of 2", "duplicates: [4, 5] of 1", "claim: [4] of 1"]
    assert line_of(report.poll, report.notes) == (
        "1 plan with 1 task: 1 free; 1 of 2 workspaces finished; 1 plan closed"
    )


async def test_a_step_that_acts_waits_until_the_soul_is_idle(journal: Journal) -> None:
    ran: list[str] = []
    busy = iter([True, False])
    steps = [
        Noted("duplicates", Place.DUPLICATE_PLANS, ran, acts=True),
        Noted("progress", Place.PROGRESS, ran),
        Noted("claim", Place.CLAIM, ran, acts=True),
    ]
    await Cycle(steps, lambda: next(busy), journal).run(POLL)
    assert [line.partition(":")[0] for line in ran] == ["duplicates", "progress"]


async def test_a_step_may_end_the_cycle(journal: Journal) -> None:
    ran: list[str] = []
    ends = StepResult(ends_cycle=True)
    steps = [Noted("synthesis", Place.SYNTHESIS, ran, result=ends), Noted("claim", Place.CLAIM, ran)]
    await Cycle(steps, lambda: True, journal).run(POLL)
    assert len(ran) == 1


async def test_what_a_step_raises_costs_that_step_only_unless_the_world_is_unable(journal: Journal) -> None:
    ran: list[str] = []
    steps = [Noted("sentinel", Place.SENTINEL, ran, error=ValueError("odd")), Noted("claim", Place.CLAIM, ran)]
    await Cycle(steps, lambda: True, journal).run(POLL)
    assert len(ran) == 2
    assert [one.entry.summary for one in await journal.recent(5)] == ["sentinel failed: ValueError: odd"]
    steps[0].error = Transient("the disk is busy")
    with pytest.raises(Transient):
        await Cycle(steps, lambda: True, journal).run(POLL)


def test_the_line_tells_of_other_issues_where_there_is_no_plan() -> None:
    none = Poll(CLOCK.now(), (PolledWorkspace(POLL.workspaces[0].watched, POLL.workspaces[0].issues, ()),))
    assert line_of(none) == "No plan is open in the workspaces; 2 other issues open"
