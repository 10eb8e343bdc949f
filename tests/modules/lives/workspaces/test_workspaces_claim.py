"""A task is claimed in the town's GitHub, worked on, and given back, with a report on its plan where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from adapters.github.types import Repo
from common.errors import BudgetExceeded, Transient
from modules.lives.workspaces.cycle import Cycle, CycleReport
from modules.lives.workspaces.execute import PAUSE_S
from modules.lives.workspaces.life import ClaimRooms, build_claim_rooms, build_task_sweep
from modules.lives.workspaces.perceive import WorkspacePerceiver
from modules.lives.workspaces.types import Blocked, HeldTask, Lost, Opened, Step, TaskWork, WorkResult
from modules.lives.workspaces.upkeep import build_acting
from modules.services.claims.claims import Claim, claim_marker
from modules.services.outbox.rules.counts import created_on_github
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS, HOUR_S
from modules.services.plans.events import build_task_event_marker, count_task_failures
from modules.services.plans.parse import parse_plan
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from soul.composition.services import Services
from tests.adapters.results import ok
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, RunningTown, awake
from tests.shipped_skills import phrase
from tests.town_github import TownGitHub

SITE = Repo("acme", "www-lil-intdev-site")
PLAN = Plan(
    "A counter",
    goal="It counts.",
    tasks=(Task(1, "Count"), Task(2, "Create SCENARIOS.md"), Task(3, "Show", dependencies=("Task 1",))),
)

ABANDONED = build_task_event_marker(2, "abandoned", 9)


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
    clock: HastyClock

    def rooms(self, *works: TaskWork) -> ClaimRooms:
        """The rooms of the SOUL as it is after a start."""
        services = self.services
        return build_claim_rooms(services, services.integrations, services.trust, build_acting(services), works)

    def steps(self, *works: TaskWork) -> list[Step]:
        """Its steps."""
        return self.rooms(*works).steps

    async def is_rowans_since_long_ago(self) -> None:
        """Let the first task be one whose claim ended some minutes ago."""
        github = self.services.github
        issue = ok(await github.get_issue(SITE, 1))
        body = update_task_in_plan_body(issue.body, 1, TaskChange("in_progress", "rowan")).body
        ok(await github.update_issue(SITE, 1, body=body))
        ended = Claim(0, "rowan", 1, 1, self.services.clock.now() - timedelta(minutes=5))
        ok(await github.create_comment(SITE, 1, f"Mine.\n\n{claim_marker(ended)}"))

    async def cycle(self, *works: TaskWork) -> CycleReport:
        """One cycle of the SOUL as it is after a start."""
        return await self.run(self.steps(*works))

    async def run(self, steps: Sequence[Step]) -> CycleReport:
        """One cycle; what the SOUL then has to say is sent."""
        services = self.services
        poll = await WorkspacePerceiver(services.github, services.workspaces, services.trust, services.clock).look()
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
    clock = HastyClock(HASTE_STEP_BY_STEP)
    async with awake(town_github.make_home(**settings), clock=clock) as life:
        services = life.app.services
        services.workspaces.watch(SITE)
        ok(await services.github.contents.write(SITE, "README.md", "A counter\n", message="Begin"))
        body = generate_plan_markdown(plan)
        ok(await services.github.create_issue(SITE, f"[PLAN] {plan.title}", body, labels=("plan",)))
        yield Site(services, clock)


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
            return Opened(pull.html_url, f"SCENARIOS.md is written, @everybody. {ABANDONED}")

        work = Work(write_page, frozenset({2}))
        report = await site.cycle(work)
        assert report.notes == ("Task 2 of acme/www-lil-intdev-site#1: opened",)
        assert report.runs_again
        clock, journal = site.services.clock, site.services.journal
        (won,) = await journal.with_act("claim", "claim-won", clock.now() - timedelta(hours=1), clock.now())
        assert (won.entry.data["repo"], won.entry.data["about"]) == (SITE.full_name, f"{SITE.full_name}#1/task-2@1")
        assert await site.task(2) == ("in_progress", "rowan")
        claimed, opened = await site.comments()
        assert "Task 2: Create SCENARIOS.md" in claimed
        assert '"event":"opened"' in opened
        assert "@everybody" not in opened
        assert count_task_failures([opened], 2) == 0
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
            return Blocked("not_allowed", "There is no key.")

        work = Work(give_up)
        for failures in (1, 2, 3, 3):
            await site.cycle(work)
            assert await site.task(1) == ("blocked", None)
            assert count_task_failures(await site.comments(), 1) == failures
        assert work.asked == [1, 1, 1]
        told = await site.comments()
        assert phrase("task_problem.not_allowed") in told[1]
        assert not any("There is no key." in one or "not_allowed" in one for one in told)
        recorded = [one.entry.reason for one in await site.services.journal.recent(100) if one.entry.loop == "task"]
        assert all("There is no key." in one for one in recorded)
        assert len(recorded) == 3
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
        assert phrase("task_problem.error") in failed
        assert not any(word in failed for word in ("ValueError", "no such page"))
        assert "is taken" in claimed


@pytest.mark.parametrize(
    "error", [BudgetExceeded("the day's budget is used up"), Transient("the model is busy")], ids=["budget", "model"]
)
async def test_what_is_not_the_fault_of_a_task_puts_it_off_and_counts_as_no_failure(
    running_town: RunningTown, town_github: TownGitHub, error: Exception
) -> None:
    plan = Plan("One", goal="g", tasks=PLAN.tasks[:1])
    async with site_with_plan(town_github, plan, SOUL_SPEED="1") as site:

        async def cannot(_: HeldTask) -> WorkResult:
            raise error

        work = Work(cannot)
        steps = site.steps(work)
        report = await site.run(steps)
        assert report.notes == ("Task 1 of acme/www-lil-intdev-site#1: deferred",)
        assert not report.runs_again
        await site.run(steps)
        assert work.asked == [1]
        assert await site.task(1) == ("pending", None)
        (claimed,) = await site.comments()
        assert (count_task_failures([claimed], 1), str(error) in claimed) == (0, False)
        assert ok(await site.services.github.refs.matching(SITE, "soul/")) == ()
        site.clock.ahead += 3_600
        await site.run(steps)
        assert work.asked == [1, 1]


async def test_a_task_that_is_put_off_again_and_again_keeps_no_other_from_its_turn(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, SOUL_SPEED="1") as site:

        async def cannot(_: HeldTask) -> WorkResult:
            raise Transient("GitHub is busy")

        steps = site.steps(work := Work(cannot))
        for _ in range(4):
            await site.run(steps)
            site.clock.ahead += PAUSE_S + 1
        assert set(work.asked) == {1, 2}


async def test_nothing_is_claimed_without_budget_for_the_work(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, BUDGET_TOKENS_PER_DAY="0") as site:

        async def never(_: HeldTask) -> WorkResult:
            raise AssertionError

        (note,) = (await site.cycle(Work(never))).notes
        assert note.startswith("no task is claimed: ")
        assert await site.comments() == []


@pytest.mark.parametrize(
    ("owner", "organisation", "begun"), [("mona", "", []), (SITE.owner, "", [1]), ("mona", SITE.owner, [1])]
)
async def test_nothing_is_claimed_where_what_is_written_would_wait_for_the_owners_yes(
    running_town: RunningTown, town_github: TownGitHub, owner: str, organisation: str, begun: list[int]
) -> None:
    settings = {"SOUL_APPROVAL": "strangers", "OWNER_GITHUB_USERNAME": owner, "WORKSPACE_ORG": organisation}
    async with site_with_plan(town_github, PLAN, **settings) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Blocked("error", "There is no key.")

        work = Work(give_up, frozenset({1}))
        steps = site.steps(work)
        await site.run(steps)
        assert work.asked == begun
        assert bool(await site.comments()) is bool(begun)
        if not begun:
            await site.run(steps)
            assert await refusals(site) == ["held"]


async def test_a_claim_waits_where_enough_was_created_on_github_within_the_hour_and_counts_itself(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Lost()

        steps = site.steps(work := Work(give_up, frozenset({1})))
        for _ in range(int(GITHUB_CREATIONS_OF_OTHERS.limit)):
            await site.services.etiquette.note_created()
        await site.run(steps)
        await site.run(steps)
        assert (work.asked, await site.comments(), await refusals(site)) == ([], [], ["later"])
        site.clock.ahead += HOUR_S
        await site.run(steps)
        assert work.asked == [1]
        now = site.services.clock.now()
        counted = await site.services.database.run(lambda rows: created_on_github(rows, now, timedelta(minutes=30)))
        assert len(counted) == 1


async def refusals(site: Site) -> list[str]:
    told = [one.entry for one in await site.services.journal.recent(200)]
    return [str(one.data["code"]) for one in told if one.data.get("act") == "claim-refused"]


async def test_the_task_of_a_soul_that_is_gone_is_taken_back_and_that_is_told_once(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Blocked("error", "There is no key.")

        await site.is_rowans_since_long_ago()
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


async def test_the_tasks_of_those_who_are_gone_are_taken_back_also_while_the_soul_works(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        begun, ends = asyncio.Event(), asyncio.Event()

        async def work_on(_: HeldTask) -> WorkResult:
            begun.set()
            await ends.wait()
            return Lost()

        rooms = site.rooms(Work(work_on, frozenset({2})))
        perceiver = WorkspacePerceiver(site.services.github, site.services.workspaces, site.services.trust, site.clock)
        sweep = build_task_sweep(site.services, perceiver, rooms)
        assert not (await sweep.run()).ran
        running = asyncio.create_task(site.run(rooms.steps))
        await begun.wait()
        await site.is_rowans_since_long_ago()
        outcome = await sweep.run()
        assert (outcome.ran, outcome.reason) == (True, "1 task settled")
        assert await site.task(1) == ("pending", None)
        assert await site.task(2) == ("in_progress", "rowan")
        ends.set()
        await running
        assert not (await sweep.run()).ran
