"""A SOUL with a workspace of the town that has one plan; tests run its cycles and its work one at a time."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from adapters.github.types import Repo
from modules.lives.tasks.handle import TaskLife
from modules.lives.tasks.types import HeldTask, TaskWorker, WorkResult
from modules.lives.workspaces.loop import Cycle, CycleReport
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.types import CycleStep
from modules.services.claims.lease_store import TASK, TaskOrders
from modules.services.claims.policy import Claim, claim_marker
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from modules.services.work.types import WorkItem
from soul.composition.services import Services
from soul.composition.wiring.github import task_steps
from soul.composition.wiring.tasks import build_claims, build_task_life
from tests.adapters.results import ok
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, awake
from tests.sending import while_it_sends
from tests.town_github import TownGitHub

SITE = Repo("acme", "www-lil-intdev-site")
PLAN = Plan(
    "A counter",
    goal="It counts.",
    tasks=(Task(1, "Count"), Task(2, "Create SCENARIOS.md"), Task(3, "Show", dependencies=("Task 1",))),
)


@dataclass
class Work:
    """Does what the test says, and keeps the numbers of the tasks it was given."""

    act: Callable[[HeldTask], Awaitable[WorkResult]]
    able: frozenset[int] = frozenset({1, 2})
    asked: list[int] = field(default_factory=list)

    def can_do(self, task: Task) -> bool:
        return task.number in self.able

    async def do(self, work: HeldTask) -> WorkResult:
        self.asked.append(work.task.number)
        return await self.act(work)


async def _unasked(_: HeldTask) -> WorkResult:
    raise AssertionError


@dataclass
class Rooms:
    """The parts of a SOUL that claim tasks and do them."""

    steps: Sequence[CycleStep]
    life: TaskLife


@dataclass
class Site:
    """A SOUL with a workspace whose only plan is issue 1."""

    services: Services
    clock: HastyClock

    def rooms(self, worker: TaskWorker | None = None) -> Rooms:
        """Build these parts of the SOUL as after a start."""
        claims = build_claims(self.services)
        life = build_task_life(self.services, claims, worker or Work(_unasked, frozenset()))
        return Rooms(task_steps(self.services, claims, life.can_do), life)

    async def is_rowans_since_long_ago(self) -> None:
        """Assign the first task to rowan, with a claim that ended five minutes ago."""
        github = self.services.github
        issue = ok(await github.get_issue(SITE, 1))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("in_progress", "rowan")).body
        ok(await github.update_issue(SITE, 1, body=body))
        ended = Claim(0, "rowan", 1, 1, self.services.clock.now() - timedelta(minutes=5))
        ok(await github.create_comment(SITE, 1, f"Mine.\n\n{claim_marker(ended)}"))

    async def cycle(self, worker: TaskWorker | None = None) -> CycleReport:
        """Run one cycle of the SOUL as after a start, and one run of its work."""
        return await self.run(self.rooms(worker))

    async def run(self, rooms: Rooms) -> CycleReport:
        """Run one cycle and one run of the work, and send what the SOUL then has to say."""
        report = await self.look(rooms)
        await while_it_sends(self.services.outbox, rooms.life.loop.run())
        return report

    async def look(self, rooms: Rooms) -> CycleReport:
        """Run one cycle."""
        services = self.services
        orders = TaskOrders(services.work, services.events.publish)
        poll = await WorkspacePerceiver(
            services.github, services.workspaces, services.trust, orders, services.clock
        ).look()
        return await Cycle(rooms.steps, lambda: True, services.journal).run(poll)

    async def row(self, number: int) -> WorkItem:
        """Return the row of a task."""
        found = await self.services.work.get(TASK, f"{SITE.full_name}#1/{number}")
        assert found
        return found

    async def task(self, number: int) -> tuple[str, str | None]:
        issue = ok(await self.services.github.get_issue(SITE, 1))
        plan = parse_plan(issue.body, issue.title)
        task = plan.task(number) if plan else None
        assert task is not None
        return task.status, task.assignee

    async def comments(self) -> list[str]:
        return [one.body for one in ok(await self.services.github.list_comments(SITE, 1))]


@asynccontextmanager
async def site_with_plan(
    town_github: TownGitHub, plan: Plan = PLAN, clock: HastyClock | None = None, /, **settings: str
) -> AsyncIterator[Site]:
    town_github.add_repo(SITE.name)
    clock = clock or HastyClock(HASTE_STEP_BY_STEP)
    async with awake(town_github.make_home(**settings), clock=clock) as life:
        services = life.app.services
        services.workspaces.watch(SITE)
        ok(await services.github.contents.write(SITE, "README.md", "A counter\n", message="Begin"))
        body = generate_plan_markdown(plan)
        ok(await services.github.create_issue(SITE, f"[PLAN] {plan.title}", body, labels=("plan",)))
        yield Site(services, clock)
