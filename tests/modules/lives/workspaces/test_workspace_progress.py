"""Proves that progress of plans is counted, told in one line, and sent to the room when it changes.

Proves the order of the steps of a cycle, what each is shown, and what ends a cycle or only one step.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace

import pytest

from adapters.github.types import Issue, Repo
from adapters.space.client import SpaceClient
from adapters.space.server import SpaceServer
from adapters.space.types import Said, SpaceEvent, WorkspaceProgress
from common.clock import FakeClock
from common.errors import Transient
from modules.lives.workspaces.loop import Cycle
from modules.lives.workspaces.plan_news import AGAIN_S, ProgressTeller
from modules.lives.workspaces.policy import line_of, progress_of, summary_of
from modules.lives.workspaces.types import Place, PlanProgress, Poll, PolledWorkspace, StepResult
from modules.runtime.journal.rows import Journal
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import FoundPlan, Plan, Task
from modules.services.workspaces.watched import WatchedWorkspace
from tests.adapters.github.github_town import GitHubTown, open_github_town
from tests.adapters.shared_server import SharedServer
from tests.hasty_clock import SetAhead
from tests.modules.services.commitments.soul_in_town import member
from tests.patience import until
from town.serving import serve

SITE = Repo("acme", "www-lil-intdev-site")
TASKS = (
    Task(1, "Count", status="completed", assignee="kit"),
    Task(2, "Show", status="in_progress", assignee="wren"),
    Task(3, "Explain", status="claimed"),
    Task(4, "Test", dependencies=("Task 2",)),
    Task(5, "Paint", status="blocked"),
    Task(6, "Print"),
)


def found(number: int, plan: Plan, repo: Repo = SITE) -> FoundPlan:
    body = generate_plan_markdown(plan)
    times = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    return FoundPlan(repo, Issue(number, f"[PLAN] {plan.title}", body, "open", "kit", ("plan",), (), "", *times), plan)


PLAN = found(4, Plan("A counter", tasks=TASKS))
TELLS = "1 plan with 6 tasks: 1 done, 1 in work, 1 blocked, 2 free, 1 waiting for others"


def test_each_task_counts_once() -> None:
    assert progress_of(PLAN.plan) == PlanProgress(total=6, completed=1, active=1, blocked=1, free=2, waiting=1)


@pytest.mark.parametrize(
    ("plans", "line"),
    [
        ((), "No plan is open in the workspaces"),
        ((PLAN,), TELLS),
        ((found(5, Plan("Nothing yet")),), "1 plan with 0 tasks"),
        ((found(5, Plan("One", tasks=TASKS[:1])),) * 2, "2 plans with 2 tasks: 2 done"),
    ],
)
def test_all_plans_are_told_in_one_line(plans: tuple[FoundPlan, ...], line: str) -> None:
    assert summary_of(plans) == line


@dataclass
class RealRoom:
    """A room with the SOUL, a peer that receives what is sent there, and the GitHub that both know."""

    soul: SpaceClient
    peer: SpaceClient
    received: list[tuple[str, float, float, float, float, float]]
    clock: FakeClock
    town: GitHubTown

    def teller(self, mute_reason: Callable[[], str] = str, *, is_trusted: bool = True) -> ProgressTeller:
        return ProgressTeller(self.soul, self.clock, mute_reason, lambda: is_trusted, self.town.client())

    async def receives(self, count: int) -> None:
        """Wait until the peer has received exactly `count` states."""
        await self.soul.send_chat("that is all")
        await until(lambda: ("", 0, 0, 0, 0, 0) in self.received)
        self.received.remove(("", 0, 0, 0, 0, 0))
        assert len(self.received) == count


@pytest.fixture
async def room() -> AsyncIterator[RealRoom]:
    server, received = SpaceServer(clock=SetAhead()), []

    def receive(event: SpaceEvent) -> None:
        if isinstance(event, WorkspaceProgress):
            counts = (event.plan_number, event.total, event.completed)
            received.append((event.workspace, *counts, event.blocked, event.in_progress))
        elif isinstance(event, Said):
            received.append(("", 0, 0, 0, 0, 0))

    await server.start(0)
    soul, peer = member(server.port, "rowan"), member(server.port, "wren", receive)
    living = [asyncio.create_task(one.run()) for one in (soul, peer)]
    await until(lambda: soul.is_active and peer.is_active)
    shared = SharedServer()
    async with serve(shared) as url:
        shared.url = url
        async with open_github_town(shared) as town:
            yield RealRoom(soul, peer, received, FakeClock(), town)
    for one in (soul, peer):
        await one.close()
    await asyncio.gather(*living)
    await server.stop()


async def test_the_room_receives_what_changed_and_the_rest_once_an_hour(room: RealRoom) -> None:
    teller = room.teller()
    await teller.tell([PLAN])
    await teller.tell([PLAN])
    await room.receives(1)
    assert room.received == [("acme/www-lil-intdev-site", 4, 6, 1, 1, 1)]
    done = replace(PLAN, plan=replace(PLAN.plan, tasks=(*TASKS[:5], replace(TASKS[5], status="completed"))))
    await teller.tell([done])
    await room.clock.advance(AGAIN_S)
    await teller.tell([done])
    await until(lambda: len(room.received) == 3)
    assert [completed for _, _, _, completed, _, _ in room.received] == [1, 2, 2]


async def test_what_a_member_told_the_room_no_other_repeats(room: RealRoom) -> None:
    await room.peer.send_workspace_state(SITE.full_name, plan_number=4, total=6, completed=1, blocked=1, in_progress=1)
    await until(lambda: SITE.full_name in room.soul.view.workspace_states())
    teller = room.teller()
    await teller.tell([PLAN])
    await room.receives(1)
    done = replace(PLAN, plan=replace(PLAN.plan, tasks=(*TASKS[:5], replace(TASKS[5], status="completed"))))
    await teller.tell([done])
    await room.receives(2)


async def test_a_room_that_was_only_found_hears_of_no_private_repository(room: RealRoom) -> None:
    garden, cellar, gone = (Repo("ada", name) for name in ("garden", "cellar", "gone"))
    ada = room.town.network.find("ada")
    assert ada is not None
    room.town.network.create_repo(ada, cellar.name, private=True)
    plans = [found(1, PLAN.plan, cellar), found(1, PLAN.plan, gone), found(1, PLAN.plan, garden)]
    await room.teller(is_trusted=False).tell(plans)
    await room.receives(1)
    assert [workspace for workspace, *_ in room.received] == ["ada/garden"]
    await room.teller().tell(plans[:1])
    await room.receives(2)


async def test_what_could_not_be_sent_is_sent_later(room: RealRoom) -> None:
    why = ["nothing is said in a room without the owner's approval"]
    teller = room.teller(lambda: why[0])
    await teller.tell([PLAN])
    await room.receives(0)
    why[0] = ""
    await teller.tell([PLAN])
    await until(lambda: len(room.received) == 1)


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
    """A step that records what it was shown."""

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
