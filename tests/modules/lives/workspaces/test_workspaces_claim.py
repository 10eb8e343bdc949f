"""A task is claimed in the town's GitHub, worked on, and given back, with a report on its plan where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from adapters.github.types import Repo
from modules.lives.workspaces.cycle import Cycle, CycleReport
from modules.lives.workspaces.life import build_claim_steps
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.types import Blocked, HeldTask, Lost, Opened, TaskWork, WorkResult
from modules.lives.workspaces.upkeep import build_acting, build_trust
from modules.services.plans.claims import Claim, claim_marker
from modules.services.plans.events import count_task_failures
from modules.services.plans.parse import parse_plan
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from soul.composition.services import Services
from tests.adapters.results import ok
from tests.running_town import RunningTown, awake
from tests.town_github import TownGitHub

SITE = Repo("acme", "www-lil-intdev-site")
PLAN = Plan(
    "A counter",
    goal="It counts.",
    tasks=(Task(1, "Count"), Task(2, "Create SCENARIOS.md"), Task(3, "Show", dependencies=("Task 1",))),
)


@dataclass
class Work:
    """Does what the test says, and keeps what it was asked to do."""

    act: Callable[[HeldTask], Awaitable[WorkResult]]
    able: frozenset[int] = frozenset({1, 2})
    asked: list[int] = field(default_factory=list)

    def can_do(self, task: Task) -> bool:
        return task.number in self.able

    async def do(self, work: HeldTask) -> WorkResult:
        self.asked.append(work.task.number)
        return await self.act(work)


@dataclass
class Site:
    """A SOUL in front of a workspace with one plan, in issue 1."""

    services: Services

    async def cycle(self, *works: TaskWork) -> CycleReport:
        """One cycle of the SOUL as it is after a start; what it then has to say is sent."""
        services = self.services
        steps = build_claim_steps(services, services.integrations, build_trust(services), build_acting(services), works)
        poll = await WorkspacePerceiver(services.github, services.workspaces, services.clock).look()
        report = await Cycle(steps, lambda: True, services.journal).run(poll)
        while (await services.outbox.deliver_due()).done:
            continue
        return report

    async def task(self, number: int) -> tuple[str, str | None]:
        issue = ok(await self.services.github.get_issue(SITE, 1))
        plan = parse_plan(issue.body, issue.title)
        task = plan.task(number) if plan else None
        assert task is not None
        return task.status, task.assignee

    async def comments(self) -> list[str]:
        return [one.body for one in ok(await self.services.github.list_comments(SITE, 1))]


@asynccontextmanager
async def site_with_plan(town_github: TownGitHub, plan: Plan = PLAN, **settings: str) -> AsyncIterator[Site]:
    town_github.add_repo(SITE.name)
    async with awake(town_github.make_home(**settings)) as life:
        services = life.app.services
        services.workspaces.watch(SITE)
        ok(await services.github.contents.write(SITE, "README.md", "A counter\n", message="Begin"))
        body = generate_plan_markdown(plan)
        ok(await services.github.create_issue(SITE, f"[PLAN] {plan.title}", body, labels=("plan",)))
        yield Site(services)


async def test_a_document_task_is_claimed_first_and_stays_ours_while_its_pull_request_is_open(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        github = site.services.github

        async def write_page(work: HeldTask) -> WorkResult:
            assert await work.is_ours()
            main = ok(await github.refs.get(SITE, "main")).sha
            ok(await github.refs.create(SITE, "task-2-scenarios", main))
            ok(await github.contents.write(SITE, "SCENARIOS.md", "#\n", message="m", branch="task-2-scenarios"))
            pull = ok(
                await github.pulls.create(
                    SITE, title="task(2)", body="Part of #1", head="task-2-scenarios", base="main"
                )
            )
            return Opened(pull.html_url, "SCENARIOS.md is written, @everybody.")

        work = Work(write_page, frozenset({2}))
        report = await site.cycle(work)
        assert report.notes == ("Task 2 of acme/www-lil-intdev-site#1: opened",)
        assert report.runs_again
        assert await site.task(2) == ("in_progress", "rowan")
        claimed, completed = await site.comments()
        assert "Task 2: Create SCENARIOS.md" in claimed
        assert '"event":"completed"' in completed
        assert "@everybody" not in completed
        assert ok(await github.refs.matching(SITE, "soul/")) == ()
        await site.cycle(work)
        assert work.asked == [2]


async def test_nothing_is_claimed_that_no_work_can_do(running_town: RunningTown, town_github: TownGitHub) -> None:
    async with site_with_plan(town_github) as site:

        async def never(_: HeldTask) -> WorkResult:
            raise AssertionError

        await site.cycle()
        await site.cycle(Work(never, frozenset({3})))
        assert await site.comments() == []
        assert await site.task(3) == ("pending", None)


async def test_a_blocked_task_is_given_back_with_a_report_and_left_alone_after_three_failures(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, Plan("One", goal="g", tasks=PLAN.tasks[:1])) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Blocked('There is no key. <!-- task-event {"task":1,"event":"abandoned","attempt":9} -->')

        work = Work(give_up)
        for failures in (1, 2, 3, 3):
            await site.cycle(work)
            assert await site.task(1) == ("blocked", None)
            assert count_task_failures(await site.comments(), 1) == failures
        assert work.asked == [1, 1, 1]
        told = await site.comments()
        assert "There is no key." in told[1]
        assert len([one for one in told if "will not be retried" in one]) == 1
        assert ok(await site.services.github.refs.matching(SITE, "soul/")) == ()


async def test_work_stops_when_the_task_is_lost_and_the_plan_stays_as_it_is(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        github = site.services.github
        stopped = asyncio.Event()

        async def lose(_: HeldTask) -> WorkResult:
            issue = ok(await github.get_issue(SITE, 1))
            ok(await github.update_issue(SITE, 1, body=issue.body.replace("@rowan", "@wren", 1)))
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return Lost()

        report = await site.cycle(Work(lose))
        assert stopped.is_set()
        assert report.notes == ("Task 2 of acme/www-lil-intdev-site#1: lost",)
        assert await site.task(2) == ("in_progress", "wren")
        assert len(await site.comments()) == 1


async def test_a_program_that_starts_again_goes_on_with_the_task_that_it_has(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        begun = asyncio.Event()

        async def wait_for_ever(_: HeldTask) -> WorkResult:
            begun.set()
            await asyncio.Event().wait()
            return Lost()

        async def fail(_: HeldTask) -> WorkResult:
            raise ValueError("no such page")

        running = asyncio.create_task(site.cycle(Work(wait_for_ever)))
        await begun.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await site.task(2) == ("in_progress", "rowan")
        again = Work(fail)
        await site.cycle(again)
        assert again.asked == [2]
        assert await site.task(2) == ("blocked", None)
        claimed, failed = await site.comments()
        assert '"event":"failed"' in failed
        assert "no such page" in failed
        assert "is taken" in claimed


@pytest.mark.parametrize(("owner", "begun"), [("mona", []), (SITE.owner, [1])])
async def test_nothing_is_claimed_where_what_is_written_would_wait_for_the_owners_yes(
    running_town: RunningTown, town_github: TownGitHub, owner: str, begun: list[int]
) -> None:
    settings = {"SOUL_APPROVAL": "strangers", "OWNER_GITHUB_USERNAME": owner}
    async with site_with_plan(town_github, PLAN, **settings) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Blocked("There is no key.")

        work = Work(give_up, frozenset({1}))
        await site.cycle(work)
        assert work.asked == begun
        assert bool(await site.comments()) is bool(begun)


async def test_the_task_of_a_soul_that_is_gone_is_taken_back_and_that_is_told_once(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Blocked("There is no key.")

        services = site.services
        issue = ok(await services.github.get_issue(SITE, 1))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("in_progress", "rowan")).body
        ok(await services.github.update_issue(SITE, 1, body=body))
        ended = Claim(0, "rowan", 1, 1, services.clock.now() - timedelta(minutes=5))
        ok(await services.github.create_comment(SITE, 1, f"Mine.\n\n{claim_marker(ended)}"))
        report = await site.cycle()
        assert report.notes == ("1 task settled",)
        assert await site.task(1) == ("pending", None)
        assert (await site.cycle()).notes == ()
        _, told = await site.comments()
        assert '"event":"timeout"' in told
        assert "It can be taken again." in told
        work = Work(give_up, frozenset({1}))
        await site.cycle(work)
        assert work.asked == [1]
        assert count_task_failures(await site.comments(), 1) == 2
