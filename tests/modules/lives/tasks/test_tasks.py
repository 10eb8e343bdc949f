"""Proves that a task is claimed in the town's GitHub, worked on, and given back, with a report if there is one.

A task that asks a question waits until a person answers or changes the task. A task is not claimed where its comments
would wait for approval, GitHub does not permit the claim, or a limit is reached.
"""

import asyncio
from datetime import timedelta

import pytest

from common.errors import BudgetExceeded, Transient
from modules.lives.tasks.handle import PAUSE_S
from modules.lives.tasks.types import Blocked, Failed, HeldTask, Lost, Opened, Stopped, WorkResult
from modules.services.claims.lease_store import ABANDONED, ASKS, TASK, TaskPlace
from modules.services.claims.policy import LEASE
from modules.services.day.gathering import DayReader
from modules.services.outbox.rules.counts import created_on_github
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS, HOUR_S
from modules.services.plans.events import build_task_event_marker, count_task_failures, parse_task_event_markers
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Plan, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from soul.commands.tasks import task_lines, tasks_of
from tests.adapters.results import ok
from tests.counted_requests import CountedRequests
from tests.hasty_clock import HastyClock
from tests.modules.lives.tasks.site import PLAN, SITE, Site, Work, site_with_plan
from tests.patience import until
from tests.running_town import HASTE_STEP_BY_STEP, RunningTown
from tests.shipped_skills import phrase
from tests.town_github import TownGitHub
from town.github.values import Fault, GitHubEvent

MINUTE_S = 60


async def test_a_document_task_is_claimed_first_and_stays_ours_while_its_pull_request_is_open(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        github = site.services.github

        async def write_page(work: HeldTask) -> WorkResult:
            main = ok(await github.refs.get(SITE, "main")).sha
            ok(await github.refs.create(SITE, "task-2-scenarios", main))
            ok(await github.contents.write(SITE, "SCENARIOS.md", "#\n", message="m", branch="task-2-scenarios"))
            pull = ok(
                await github.pulls.create(
                    SITE, title="task(2)", body="Part of #1", head="task-2-scenarios", base="main"
                )
            )
            return Opened(pull.html_url, "SCENARIOS.md is written.")

        work = Work(write_page, frozenset({2}))
        await site.cycle(work)
        assert ((await site.row(2)).state, (await site.row(2)).outcome) == ("done", "opened")
        clock, journal = site.services.clock, site.services.journal
        (won,) = await journal.with_act("claim", "claim-won", clock.now() - timedelta(hours=1), clock.now())
        assert (won.entry.data["repo"], won.entry.data["about"]) == (SITE.full_name, f"{SITE.full_name}#1/task-2@1")
        assert await site.task(2) == ("in_progress", "rowan")
        (told,) = await site.comments()
        assert "Task 2: Create SCENARIOS.md" in told
        assert [one.event for one in parse_task_event_markers(told)] == ["claimed", "opened"]
        assert "/pull/2" in told
        assert count_task_failures([told], 2) == 0
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


async def test_a_task_whose_workspace_is_unwatched_or_gone_is_looked_at_no_more(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        rooms, services = site.rooms(Work(lambda _: asyncio.sleep(0, Lost()))), site.services

        async def settled() -> list[tuple[str, str]]:
            await rooms.life.loop.run()
            return [(row.state, row.outcome) for row in await services.work.newest(TASK, 9)]

        await site.look(rooms)
        services.workspaces.unwatch(SITE)
        assert await settled() == [("done", "unwatched")]
        services.workspaces.watch(SITE, ordered_at=site.clock.now())
        await site.look(rooms)
        await rooms.life.orders.take(TaskPlace(SITE, 1, 3))
        assert [row.state for row in await services.work.newest(TASK, 9)] == ["pending"] * 2
        del town_github.network.state.repos[SITE.full_name.lower()]
        site.clock.ahead += 1800
        assert await settled() == [("dropped", "gone"), ("done", "gone")]


@pytest.mark.slow
async def test_a_blocked_task_is_given_back_with_a_report_and_left_alone_after_three_failures(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, Plan("One", goal="g", tasks=PLAN.tasks[:1])) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Failed("not_allowed", "There is no key.")

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
        for _ in range(2):
            site.clock.ahead += 2 * 3600
            await site.cycle(work)
        now = site.services.clock.now()
        warned = await site.services.journal.with_act("claim", ABANDONED, now - timedelta(days=1), now)
        assert [one.entry.line for one in warned] == ["warn"]
        settings, home = site.services.settings, site.services.home
        assert DayReader(settings, home, site.services.clock).read().waits.tasks == 1
        rooms = site.rooms(work)
        await rooms.life.orders.take(TaskPlace(SITE, 1, 1))
        await site.run(rooms)
        assert work.asked == [1] * 4
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

        await site.cycle(Work(lose))
        assert stopped.is_set()
        assert (await site.row(2)).outcome == "lost"
        assert await site.task(2) == ("in_progress", "wren")
        assert len(await site.comments()) == 1


class PassingClock(HastyClock):
    """A clock that moves forward by each sleep of a minute or longer."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self.ahead += seconds if seconds >= MINUTE_S else 0


@pytest.mark.slow
async def test_a_line_that_a_late_write_of_a_peer_empties_is_restored_and_the_work_goes_on(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN, PassingClock(HASTE_STEP_BY_STEP)) as site:
        github = site.services.github

        async def is_overwritten(_: HeldTask) -> WorkResult:
            issue = ok(await github.get_issue(SITE, 1))
            emptied = update_task_in_plan_body(issue.body, 2, TaskChange("pending", "")).body
            ok(await github.update_issue(SITE, 1, body=emptied))

            async def is_restored() -> bool:
                return await site.task(2) == ("in_progress", "rowan")

            await until(is_restored, what="the line names the SOUL again")
            return Opened("", "")

        await site.cycle(Work(is_overwritten))
        assert (await site.row(2)).outcome == "opened"


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


async def test_what_is_not_the_fault_of_a_task_puts_it_off_and_counts_as_no_failure(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    plan = Plan("One", goal="g", tasks=PLAN.tasks[:1])
    error = BudgetExceeded("the day's budget is used up", retry_after=7_000)
    async with site_with_plan(town_github, plan, SOUL_SPEED="1") as site:

        async def cannot(_: HeldTask) -> WorkResult:
            raise error

        work = Work(cannot)
        rooms = site.rooms(work)
        await site.run(rooms)
        assert ((await site.row(1)).state, (await site.row(1)).attempts) == ("pending", 1)
        await site.run(rooms)
        assert work.asked == [1]
        assert await site.task(1) == ("pending", None)
        (claimed,) = await site.comments()
        assert (count_task_failures([claimed], 1), str(error) in claimed) == (0, False)
        assert ok(await site.services.github.refs.matching(SITE, "soul/")) == ()
        site.clock.ahead += 3_700
        await site.run(rooms)
        assert work.asked == [1]
        site.clock.ahead += 3_600
        await site.run(rooms)
        assert work.asked == [1, 1]


@pytest.mark.slow
async def test_a_task_that_is_put_off_again_and_again_keeps_no_other_from_its_turn(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, SOUL_SPEED="1") as site:

        async def cannot(_: HeldTask) -> WorkResult:
            raise Transient("GitHub is busy")

        rooms = site.rooms(work := Work(cannot))
        for _ in range(4):
            await site.run(rooms)
            site.clock.ahead += PAUSE_S + 1
        assert set(work.asked) == {1, 2}


@pytest.mark.slow
async def test_what_keeps_all_tasks_from_being_done_leads_to_few_claims_however_long_it_lasts(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, SOUL_SPEED="1") as site:
        is_down = True

        async def tries(_: HeldTask) -> WorkResult:
            if is_down:
                raise Transient("the model service is down")
            return Opened("https://github.com/acme/www/pull/9", "done")

        rooms = site.rooms(work := Work(tries))
        for _ in range(12 * 2):
            await site.run(rooms)
            site.clock.ahead += 1_800
        assert 3 <= len(work.asked) <= 8
        is_down, before = False, len(work.asked)
        site.clock.ahead += 6 * 3_600
        await site.run(rooms)
        assert len(work.asked) > before


@pytest.mark.parametrize("is_gone", [True, False], ids=["on a plan that is gone", "on a plan that is there"])
async def test_a_claim_that_ended_unseen_is_given_back_and_keeps_no_other_task_waiting(
    running_town: RunningTown, town_github: TownGitHub, *, is_gone: bool
) -> None:
    async with site_with_plan(town_github) as site:
        asked: list[tuple[int, int, int]] = []

        async def stop(work: HeldTask) -> WorkResult:
            asked.append((work.found.number, work.task.number, work.epoch))
            return Stopped("it waits for your approval")

        rooms = site.rooms(Work(stop, frozenset({1})))
        await site.run(rooms)
        if is_gone:
            town_github.network.state.repos[SITE.full_name.lower()].issues[1] = None
            another = generate_plan_markdown(Plan("Another", goal="g", tasks=PLAN.tasks[:1]))
            ok(await site.services.github.create_issue(SITE, "[PLAN] Another", another, labels=("plan",)))
        site.clock.ahead += LEASE.total_seconds() + PAUSE_S
        for _ in range(3):
            await site.run(rooms)
            site.clock.ahead += PAUSE_S
        assert list(dict.fromkeys(asked)) == [(1, 1, 1), (2, 1, 1) if is_gone else (1, 1, 2)]


async def test_nothing_is_claimed_without_budget_for_the_work(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, BUDGET_TOKENS_PER_DAY="0") as site:

        async def never(_: HeldTask) -> WorkResult:
            raise AssertionError

        await site.cycle(Work(never))
        (told,) = [one.entry.summary for one in await site.services.journal.recent(100) if one.entry.loop == "tasks"]
        assert "no task is claimed: " in told
        assert await site.comments() == []


async def test_the_task_of_a_soul_that_is_gone_is_taken_back_and_that_is_told_once(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Failed("error", "There is no key.")

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


@pytest.mark.slow
async def test_the_plans_are_looked_after_while_a_task_is_worked_on(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        begun, ends = asyncio.Event(), asyncio.Event()

        async def work_on(_: HeldTask) -> WorkResult:
            begun.set()
            await ends.wait()
            return Lost()

        rooms = site.rooms(Work(work_on))
        await site.look(rooms)
        working = asyncio.create_task(rooms.life.loop.run())
        await begun.wait()
        await site.is_rowans_since_long_ago()
        assert (await site.look(rooms)).notes == ("1 task settled",)
        assert (await site.task(1), await site.task(2)) == (("pending", None), ("in_progress", "rowan"))
        assert site.services.attention.free
        ends.set()
        await working


QUESTION = "Which unit do the beds have, @owner? <!-- hidden --> The readings say 3 and 300."
ONE_TASK = Plan("One", goal="g", tasks=PLAN.tasks[:1])


class Asking:
    """A worker that asks a question, and keeps the thread that it was shown each time."""

    def __init__(self) -> None:
        self.shown: list[list[tuple[str, str]]] = []
        self.work = Work(self._ask)

    async def _ask(self, task: HeldTask) -> WorkResult:
        self.shown.append([(one.author, one.body.partition("<!-- task-event")[0].strip()) for one in task.talk])
        return Blocked(QUESTION)


async def look_later(site: Site, work: Work) -> None:
    """Run a cycle once the row is due again."""
    site.clock.ahead += PAUSE_S + 1
    await site.cycle(work)


def say(town_github: TownGitHub, login: str, body: str) -> None:
    """Comment on the plan as `login`."""
    network = town_github.network
    repo = network.state.repos[SITE.full_name.lower()]
    author = network.find(login) or network.create_account(login)
    network.write_comment(repo, network.issue(repo, 1), author, body)


async def test_a_task_that_asks_is_claimed_again_once_a_person_who_counts_answered(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK) as site:
        network, asking = town_github.network, Asking()
        network.create_account("kit")
        network.state.repos[SITE.full_name.lower()].collaborators.add("kit")
        await site.cycle(asking.work)
        asked = (await site.comments())[1]
        assert "Which unit do the beds have" in asked
        assert "@owner" not in asked
        assert "hidden -->" not in asked.partition("<!-- task-event")[0].replace("<!\u200b-- hidden -->", "")
        assert await site.task(1) == ("blocked", None)
        assert count_task_failures(await site.comments(), 1) == 0
        assert (await site.row(1)).outcome == ASKS
        say(town_github, "mallory", "Metres.")
        say(town_github, "kit", f"Task 2 is done. {build_task_event_marker(2, 'completed', 1)}")
        await look_later(site, asking.work)
        assert asking.work.asked == [1]
        (line,) = await tasks_of(site.services.database, site.services.home, site.clock, "https://github.com")
        assert line.state == ASKS
        assert "Which unit do the beds have" in task_lines([line], site.services.settings)[0]
        assert DayReader(site.services.settings, site.services.home, site.clock).read().waits.tasks == 1
        say(town_github, "kit", "Centimetres.")
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]
        assert [author for author, _ in asking.shown[1]] == ["rowan", "kit"]
        assert asking.shown[1][1] == ("kit", "Centimetres.")
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]


async def test_a_question_that_nobody_answers_is_looked_at_seldom_and_its_answer_within_an_hour(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK, SOUL_SPEED="1") as site:
        network, asking = town_github.network, Asking()
        network.create_account("kit")
        network.state.repos[SITE.full_name.lower()].collaborators.add("kit")
        await site.cycle(asking.work)
        read, rooms = CountedRequests(town_github.faults), site.rooms(asking.work)
        site.clock.ahead += 10 * 3600
        await rooms.life.loop.run()
        read.taken()
        for _ in range(10):
            site.clock.ahead += PAUSE_S + 1
            await rooms.life.loop.run()
        assert read.taken() == 0
        say(town_github, "kit", "Centimetres.")
        site.clock.ahead += 3600
        await site.run(rooms)
        assert asking.work.asked == [1, 1]


async def test_what_cannot_be_read_or_written_now_is_neither_unanswered_nor_of_somebody_else(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK) as site:
        network, place = town_github.network, f"/repos/{SITE.full_name}/issues/1"
        network.create_account("kit")
        network.state.repos[SITE.full_name.lower()].collaborators.add("kit")

        async def is_answered_meanwhile(_: HeldTask) -> WorkResult:
            if len(work.asked) == 1:
                say(town_github, "kit", "The beds are in centimetres.")
                town_github.faults.arm(Fault("unavailable", f"GET {place}", times=3))
            return Blocked(QUESTION)

        def refuse_the_next_change(event: GitHubEvent) -> None:
            if event.kind == "comment_written":  # the claim
                unsubscribe()
                town_github.faults.arm(Fault("unavailable", f"PATCH {place}", times=2))

        work = Work(is_answered_meanwhile)
        unsubscribe = network.subscribe(refuse_the_next_change)
        await site.cycle(work)
        assert ((await site.row(1)).outcome, work.asked) == ("deferred", [])
        await look_later(site, work)
        town_github.faults.clear()
        assert ((await site.row(1)).outcome, work.asked) == ("deferred", [1])
        await look_later(site, work)
        await look_later(site, work)
        assert work.asked == [1, 1]


async def test_a_peer_waits_for_the_answer_too_and_another_text_of_the_task_or_the_owner_lets_it_go_on(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, ONE_TASK) as site:
        github, asking = site.services.github, Asking()
        await site.cycle(asking.work)
        await site.services.work.settle(await site.row(1), "done", "of another soul")
        await look_later(site, asking.work)
        assert asking.work.asked == [1]
        rooms = site.rooms(asking.work)
        await rooms.life.orders.take(TaskPlace(SITE, 1, 1))
        await site.run(rooms)
        assert asking.work.asked == [1, 1]
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1]
        body = ok(await github.get_issue(SITE, 1)).body
        ok(await github.update_issue(SITE, 1, body=body.replace("Task 1: Count", "Task 1: Count in cm")))
        await look_later(site, asking.work)
        assert asking.work.asked == [1, 1, 1]


def test_a_block_that_asks_nothing_counts_as_a_failure_as_peers_tell_it() -> None:
    plain = build_task_event_marker(1, "blocked", 1)
    assert count_task_failures([plain, build_task_event_marker(1, "blocked", 2, "0123456789abcdef")], 1) == 1


@pytest.mark.parametrize(("owner", "organisation", "begun"), [("mona", "", []), ("mona", SITE.owner, [1])])
async def test_nothing_is_claimed_where_what_is_written_would_wait_for_the_owners_yes(
    running_town: RunningTown, town_github: TownGitHub, owner: str, organisation: str, begun: list[int]
) -> None:
    settings = {"SOUL_APPROVAL": "strangers", "OWNER_GITHUB_USERNAME": owner, "WORKSPACE_ORG": organisation}
    async with site_with_plan(town_github, PLAN, **settings) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Failed("error", "There is no key.")

        work = Work(give_up, frozenset({1}))
        await site.run(site.rooms(work))
        assert work.asked == begun
        assert bool(await site.comments()) is bool(begun)
        if not begun:
            site.clock.ahead += HOUR_S
            await site.run(site.rooms(work))  # as after a restart
            assert await refusals(site) == ["held"]


async def test_a_claim_that_github_does_not_permit_is_told_once_in_its_words_and_counts_as_nothing_created(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, PLAN, WORKSPACE_ORG=SITE.owner) as site:
        town_github.network.state.repos[SITE.full_name.lower()].collaborators = set()

        async def never(_: HeldTask) -> WorkResult:
            raise AssertionError

        rooms = site.rooms(Work(never, frozenset({1})))
        for _ in range(3):
            await site.run(rooms)
            site.clock.ahead += HOUR_S
        told = [one.entry for one in await site.services.journal.recent(200) if one.entry.loop == "claim"]
        assert [one.data["code"] for one in told] == ["not_permitted"]
        assert "check its permissions" in told[0].reason
        assert await site.comments() == []
        now = site.services.clock.now()
        created = await site.services.database.run(lambda rows: created_on_github(rows, now, timedelta(days=1)))
        assert not list(created)


@pytest.mark.slow
async def test_a_claim_waits_where_enough_was_created_on_github_within_the_hour_and_counts_itself(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:

        async def give_up(_: HeldTask) -> WorkResult:
            return Lost()

        rooms = site.rooms(work := Work(give_up, frozenset({1})))
        for _ in range(int(GITHUB_CREATIONS_OF_OTHERS.limit)):
            await site.services.etiquette.note_created()
        await site.run(rooms)
        await site.run(rooms)
        assert (work.asked, await site.comments(), await refusals(site)) == ([], [], ["later"])
        site.clock.ahead += HOUR_S
        await site.run(rooms)
        assert work.asked == [1]
        now = site.services.clock.now()
        counted = await site.services.database.run(lambda rows: created_on_github(rows, now, timedelta(minutes=30)))
        assert len(counted) == 1


async def refusals(site: Site) -> list[str]:
    told = [one.entry for one in await site.services.journal.recent(200)]
    return [str(one.data["code"]) for one in told if one.data.get("act") == "claim-refused"]
