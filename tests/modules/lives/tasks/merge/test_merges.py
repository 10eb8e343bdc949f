"""Proves that our own pull request for a task is merged once, at the approved commit, and what follows from that.

Proves what keeps an approved pull request of ours from being merged: an old branch, a merge queue, the owner's word.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from adapters.github.client import GitHub
from adapters.github.types import PullRequest
from modules.lives.tasks.handle import PAUSE_S
from modules.lives.tasks.merge.handle import CONFLICT, LEFT_ALONE_S, LOOK_AGAIN_S, MergeHandler
from modules.lives.tasks.merge.perceive import MERGE
from modules.lives.tasks.offering import TaskActs
from modules.lives.tasks.review.rounds import REVISION, Round
from modules.lives.tasks.types import HeldTask, Opened, WorkResult
from modules.services.outbox.github_bodies import MergeBody
from modules.services.peers.policy import PeerClaim
from modules.services.plans.types import Plan, Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from soul.commands.tasks import TaskLine, tasks_of
from soul.composition.wiring.tasks import build_code_work, build_installer, build_merge_loop
from tests.adapters.results import ok
from tests.counted_requests import CountedRequests
from tests.loopback import github_at
from tests.modules.lives.tasks.site import SITE, Site, Work, site_with_plan
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.outbox_rows import newest_intents
from tests.running_town import RunningTown
from tests.sending import while_it_sends
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.github.pull_methods import QUEUE_WAIT
from town.github.values import Fault, StoredPull, StoredRepo, StoredStatus

pytestmark = needs_git


PLAN = Plan("A counter", goal="It counts.", tasks=(Task(1, "Count"),))


@dataclass
class Merging:
    """A SOUL whose pull request for the first task is open, and `kit`, a person who may push there."""

    site: Site
    repo: StoredRepo
    kit: GitHub
    works: int = field(default=0)

    @property
    def pulls(self) -> list[StoredPull]:
        return list(self.repo.pulls.values())

    @property
    def pull(self) -> StoredPull:
        """The newest pull request."""
        return self.pulls[-1]

    async def offers(self, held: HeldTask) -> WorkResult:
        """Open a pull request for the task, as the work on it does."""
        self.works += 1
        github, name = self.site.services.github, f"task-1-count{'' if self.works == 1 else f'-e{self.works}'}"
        main = ok(await github.refs.get(SITE, "main")).sha
        ok(await github.refs.create(SITE, name, main))
        page = f"COUNT{self.works}.md"
        ok(await github.contents.write(SITE, page, "It counts.\n", message="m", branch=name))
        body = f"Part of #{held.found.number}"
        outbox = self.site.services.outbox
        submitted = await outbox.submit(TaskActs(held).pull_request(head=name, base="main", body=body))
        await outbox.deliver_due()
        opened = await outbox.get(submitted.intent.id)
        assert opened
        return Opened(opened.result_uri or "", "It counts.")

    async def looks(self, failing: Callable[..., Awaitable[Sequence[str]]] | None = None) -> None:
        """Let the SOUL, as if just started, look at its pull requests once after the waiting time."""
        self.site.clock.ahead += LOOK_AGAIN_S + 1
        services = self.site.services
        loop = build_merge_loop(services, build_code_work(services, build_installer(services)))
        if failing and isinstance(handler := loop.handlers[0], MergeHandler):
            loop = replace(loop, handlers=(replace(handler, failing=failing),))
        await while_it_sends(services.outbox, loop.run())

    async def line(self) -> TaskLine:
        """Return what the owner is told of the task."""
        services = self.site.services
        (line,) = await tasks_of(services.database, services.home, self.site.clock, services.github.address)
        return line

    async def cycle(self) -> None:
        """Run one cycle over its workspaces, which would take up any free task."""
        await self.site.cycle(Work(self.offers))

    async def approves(self) -> None:
        ok(await self.kit.pulls.create_review(SITE, self.pull.number, event="APPROVE", commit_id=self.pull.head))

    async def pushes(self, text: str = "More\n") -> None:
        """Push to the branch of the pull request as kit."""
        await self._write("MORE.md", text, self.pull.head_ref)

    def says_of_it(self, state: str) -> None:
        """Store a test status `state` for the head commit of the pull request."""
        now, kit = self.site.clock.now(), self.pull.issue.author
        self.repo.statuses.append(
            StoredStatus(len(self.repo.statuses), self.pull.head, state, "tests", None, None, kit, now)
        )

    async def branches(self) -> list[str]:
        return [one.name for one in ok(await self.kit.refs.branches(SITE)) if not one.name.startswith("soul/")]

    async def read(self) -> PullRequest:
        return ok(await self.kit.pulls.get(SITE, self.pull.number))

    async def _write(self, path: str, text: str, branch: str) -> None:
        ok(await self.kit.contents.write(SITE, path, text, message="m", branch=branch))


@asynccontextmanager
async def merging(town_github: TownGitHub, **settings: str) -> AsyncIterator[Merging]:
    town_github.network.create_account("kit", token="t-kit")
    async with site_with_plan(town_github, PLAN, **settings) as site:
        repo = next(one for one in town_github.network.repos() if one.name == SITE.name)
        repo.collaborators.add("kit")
        kit = github_at(town_github.url, "kit", site.clock)
        place = Merging(site, repo, kit)
        await place.cycle()
        assert await site.task(1) == ("in_progress", "rowan")
        assert len(place.pulls) == 1
        yield place
        await kit.aclose()


async def test_what_was_approved_is_merged_once_and_completes_its_task(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.looks()
        assert place.pull.merged_at is None
        opened = await place.line()
        await place.approves()
        for _ in range(2):
            await place.looks()
            await place.cycle()
        read = await place.read()
        assert read.merged
        commit = ok(await place.kit.refs.commit(SITE, read.merge_commit_sha))
        assert commit.message.splitlines()[0] == f"task(1): Count (#{read.number})"
        assert commit.message.splitlines()[-1].startswith("Assisted-by: ")
        assert len(commit.parents) == 1
        assert await place.branches() == ["main"]
        assert await place.site.task(1) == ("completed", None)
        assert len(place.pulls) == 1
        assert len(await place.site.comments()) == 1, "GitHub itself shows the merge"
        done = await place.line()
        assert [(one.title, one.state, one.holder) for one in (opened, done)] == [
            ("Count", "opened", ""),
            ("Count", "completed", ""),
        ]
        assert opened.link == done.link == read.html_url
        assert "" < opened.since < done.since


async def test_a_soul_whose_task_was_taken_up_meanwhile_merges_nothing_and_stops_once_its_pull_request_is_closed(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.approves()
        issue = ok(await place.kit.get_issue(SITE, 1))
        taken = update_task_in_plan_body(issue.body, 1, TaskChange("in_progress", "kit")).body
        ok(await place.kit.update_issue(SITE, 1, body=taken))
        town_github.faults.arm(Fault("unavailable", f"GET /repos/{SITE.full_name}/issues/1", times=20))
        await place.looks()
        town_github.faults.clear()
        assert place.pull.merged_at is None
        await place.looks()
        assert place.pull.merged_at is None
        assert (await place.line()).waits == "another SOUL has its task now"
        ok(await place.kit.update_issue(SITE, place.pull.number, state="closed"))
        await place.looks()
        await place.cycle()
        assert place.pull.issue.state == "closed"
        assert await place.site.task(1) == ("in_progress", "kit")
        assert place.works == 1


async def test_a_task_is_left_alone_after_the_owner_closed_its_pull_request(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, OWNER_GITHUB_USERNAME="kit", SOUL_SPEED="1") as place:
        await place.approves()
        place.says_of_it("failure")
        await place.looks()
        place.site.clock.ahead += 25 * 3600
        for _ in range(2):
            await place.looks()
        assert [one.kind for one in await place.site.services.outbox.held()] == ["merge"]
        ok(await place.kit.update_issue(SITE, place.pull.number, state="closed"))
        for _ in range(3):
            await place.looks()
            place.site.clock.ahead += 400
            await place.cycle()
        assert (place.works, [one.issue.state for one in place.pulls]) == (1, ["closed"])
        assert await place.site.services.outbox.held() == []
        assert any("left alone" in one.entry.summary for one in await place.site.services.journal.recent(200))


async def test_nothing_is_merged_that_was_pushed_after_the_approval(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.approves()
        await place.pushes()
        await place.looks()
        assert place.pull.merged_at is None
        await place.approves()
        await place.looks()
        assert place.pull.merged_at is not None


@pytest.mark.parametrize("state", ["failure", pytest.param("pending", marks=pytest.mark.slow)])
async def test_a_check_that_has_not_passed_keeps_a_pull_request_from_being_merged(
    running_town: RunningTown, town_github: TownGitHub, state: str
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        await place.approves()
        place.says_of_it(state)
        await place.looks()
        assert place.pull.merged_at is None
        assert await place.site.services.outbox.held() == []
        place.site.clock.ahead += 25 * 3600
        for _ in range(2):
            await place.looks()
        (asked,) = await place.site.services.outbox.held()
        assert asked.kind == "merge"
        assert place.pull.merged_at is None
        place.says_of_it("success")
        place.site.clock.ahead += LEFT_ALONE_S
        await place.looks()
        assert place.pull.merged_at is not None


async def test_a_pull_request_that_waits_unchanged_is_read_seldom_and_at_once_after_a_change(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        place.pull.issue.updated_at -= timedelta(minutes=1)  # GitHub's times are in whole seconds
        place.site.clock.ahead += 10 * 3_600
        await place.looks()
        read = CountedRequests(town_github.faults, f"GET /repos/{SITE.full_name}/pulls/*")
        read.taken()
        for _ in range(10):
            await place.looks()
        assert read.taken() == 0
        place.site.clock.ahead += LEFT_ALONE_S
        await place.looks()
        assert read.taken() > 0
        ok(await place.kit.pulls.create_review(SITE, place.pull.number, event="COMMENT", body="Nice."))
        await place.looks()
        assert read.taken() > 0
        ok(await place.kit.update_issue(SITE, place.pull.number, state="closed"))
        await place.looks()
        (row,) = await place.site.services.work.newest(MERGE, 9)
        assert row.state == "done"


@pytest.mark.slow
async def test_a_merge_that_github_refused_thrice_is_tried_again_a_day_later(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        await place.approves()
        place.repo.archived = True
        for _ in range(4):
            await place.looks()
        place.repo.archived = False
        place.site.clock.ahead += 3_600
        await place.looks()
        assert place.pull.merged_at is None
        place.site.clock.ahead += 24 * 3_600
        await place.looks()
        assert place.pull.merged_at is not None


@pytest.mark.slow
async def test_a_merge_by_a_person_completes_the_task_too(running_town: RunningTown, town_github: TownGitHub) -> None:
    async with merging(town_github) as place:
        await place.looks()
        ok(await place.kit.pulls.merge(SITE, place.pull.number))
        await place.looks()
        await place.cycle()
        assert await place.site.task(1) == ("completed", None)
        assert await place.branches() == ["main"]


async def test_a_pull_request_that_is_gone_is_looked_at_no_more(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.looks()
        del place.repo.pulls[place.pull.number]
        await place.looks()
        (row,) = await place.site.services.work.newest(MERGE, 9)
        assert (row.state, row.outcome) == ("done", "gone")


@needs_sandbox
async def test_what_is_too_large_to_be_tested_with_its_base_is_merged_once_it_is_approved(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_CODING="on") as place:
        path = "/".join(["d" * 200] * 11)
        ok(await place.kit.contents.write(SITE, f"{path}/x.txt", "x\n", message="m"))
        await place.approves()
        await place.looks()
        assert place.pull.merged_at is not None


async def test_what_others_offer_is_not_merged_whoever_approved_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.approves()
        kit = town_github.network.find("kit")
        assert kit
        place.pull.issue.author = kit
        await place.looks()
        assert place.pull.merged_at is None


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["on", "off"])
async def test_where_nobody_can_review_it_the_owner_decides_whether_it_is_merged(
    running_town: RunningTown, town_github: TownGitHub, setting: str
) -> None:
    async with merging(town_github, SOUL_MERGE_ALONE=setting, SOUL_SPEED="1") as place:
        await place.looks()
        assert place.pull.merged_at is None
        place.site.clock.ahead += 31 * 60
        for _ in range(2):
            await place.looks()
        waiting = [one for one in await place.site.services.outbox.held() if one.kind == "merge"]
        assert (place.pull.merged_at is not None, len(waiting)) == ((True, 0) if setting == "on" else (False, 1))
        if waiting:
            await place.site.services.outbox.approve(waiting[0].id)
            await place.looks()
            assert place.pull.merged_at is not None


@pytest.mark.parametrize("setting", ["on", "off"])
async def test_while_it_is_unknown_whose_reviews_count_nothing_is_merged_and_the_owner_is_not_asked(
    running_town: RunningTown, town_github: TownGitHub, setting: str
) -> None:
    async with merging(town_github, SOUL_MERGE_ALONE=setting, SOUL_SPEED="1") as place:
        number, review = place.pull.number, place.kit.pulls.create_review
        ok(await review(SITE, number, event="REQUEST_CHANGES", body="Off by one; do not merge."))
        place.site.clock.ahead += 3_600
        town_github.faults.arm(Fault("unavailable", f"GET /repos/{SITE.full_name}/collaborators", times=20))
        await place.looks()
        town_github.faults.clear()
        assert (place.pull.merged_at, await place.site.services.outbox.held()) == (None, [])


async def test_changes_that_are_asked_for_while_its_merge_is_tested_keep_it_from_being_merged(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        await place.approves()

        async def failing(*_: object) -> Sequence[str]:
            ok(await place.kit.pulls.create_review(SITE, place.pull.number, event="REQUEST_CHANGES", body="Wait."))
            return ()

        await place.looks(failing)
        merges = [one for one in await newest_intents(place.site.services.outbox, 20) if one.kind == "merge"]
        assert (place.pull.merged_at, merges) == (None, [])


@pytest.mark.parametrize(("outcome", "state"), [("over", "open"), ("answered", "open"), ("code_unfit", "closed")])
async def test_changes_that_no_round_tried_to_make_take_nothing_back(
    running_town: RunningTown, town_github: TownGitHub, outcome: str, state: str
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        work, this = place.site.services.work, Round(SITE, place.pull.number, place.pull.head)
        await work.add(this.row)
        row = await work.get(REVISION, this.key)
        assert row
        await work.settle(row, "done", outcome)
        ok(await place.kit.pulls.create_review(SITE, this.number, event="REQUEST_CHANGES", body="Off by one."))
        place.site.clock.ahead += 3_700
        await place.looks()
        assert place.pull.issue.state == state


@pytest.mark.slow
async def test_a_conflict_that_no_round_resolved_gives_the_task_back_and_keeps_the_branch(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        await place.approves()
        ok(await place.kit.contents.write(SITE, "COUNT1.md", "Other\n", message="m"))
        for _ in range(2):
            await place.looks()
        first, work = place.pull, place.site.services.work
        (row,) = await work.newest(CONFLICT, 9)
        assert (first.issue.state, row.state, row.key) == ("open", "pending", Round(SITE, 2, first.head).key)
        await work.settle(row, "done", "code_unfit")
        await place.looks()
        assert (first.issue.state, first.merged_at) == ("closed", None)
        ok(await place.kit.update_issue(SITE, first.number, state="open"))
        for _ in range(3):
            await place.looks()
        told = [one.entry.summary for one in await place.site.services.journal.recent(200)]
        assert (first.issue.state, len([one for one in told if "taken back" in one])) == ("open", 1)
        ok(await place.kit.update_issue(SITE, first.number, state="closed"))
        await place.looks()
        for _ in range(2):
            place.site.clock.ahead += PAUSE_S
            await place.cycle()
        assert sorted(await place.branches()) == ["main", "task-1-count", "task-1-count-e2"]
        assert [one.issue.state for one in place.pulls] == ["closed", "open"]
        assert await place.site.task(1) == ("in_progress", "rowan")
        await place.approves()
        await place.looks()
        await place.cycle()
        assert await place.site.task(1) == ("completed", None)
        assert "task-1-count" in await place.branches()


@pytest.mark.slow
async def test_what_was_turned_down_goes_back_once_no_round_is_left_with_what_was_said_and_three_times_at_most(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        for attempt in range(1, 4):
            assert len(place.pulls) == attempt
            said = f"Count number {attempt} is off by one."
            if attempt == 1:
                review = place.kit.pulls.create_review
                ok(await review(SITE, place.pull.number, event="REQUEST_CHANGES", body=said))
                await place.looks()
                assert place.pull.issue.state == "open"
                place.site.clock.ahead += 3_600
                await place.looks()
                work = place.site.services.work
                revision = Round(SITE, place.pull.number, place.pull.head).row
                await work.add(revision)
                await place.looks()
                assert place.pull.issue.state == "open"
                waiting = await work.get(revision.kind, revision.key)
                assert waiting
                await work.settle(waiting, "dropped", "unfit")
                place.site.clock.ahead += LEFT_ALONE_S
                await place.looks()
            else:
                ok(await place.kit.create_comment(SITE, place.pull.number, said))
                ok(await place.kit.update_issue(SITE, place.pull.number, state="closed"))
                await place.looks()
            assert place.pull.issue.state == "closed"
            for _ in range(2):
                place.site.clock.ahead += PAUSE_S
                await place.cycle()
            told = [one for one in await place.site.comments() if '"event":"failed"' in one]
            assert len(told) == attempt
            assert said in told[-1]
        assert len(place.pulls) == 3
        assert await place.site.task(1) == ("pending", None)


@pytest.mark.slow
async def test_without_a_verdict_others_are_asked_once_and_then_the_owner(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        for name in ("ada", "bea", "cy", "dee"):
            account = town_github.network.create_account(name)
            place.repo.collaborators.add(name)
            claim = PeerClaim(f"{name}.test", f"did:plc:{name}", name)
            place.site.services.peer_registry.link_bluesky_handle_to_github(claim, github_id=account.id)
        await place.looks()
        assert place.pull.requested == []
        for _ in range(2):
            place.site.clock.ahead += 1.2 * 3_600
            await place.looks()
        asked = {one.login for one in place.pull.requested}
        assert len(asked) == 2
        place.site.clock.ahead += 2 * 3_600
        for _ in range(2):
            await place.looks()
        assert {one.login for one in place.pull.requested} == asked
        waiting = [one for one in await place.site.services.outbox.held() if one.kind == "merge"]
        assert (len(waiting), place.pull.merged_at, place.pull.issue.state) == (1, None, "open")


async def test_a_branch_that_is_behind_is_updated_once_it_is_approved_and_then_merged(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.needs_up_to_date = True
        approved = place.pull.head
        ok(await place.kit.contents.write(SITE, "OTHER.md", "Other\n", message="m"))
        await place.approves()
        await place.looks()
        assert (place.pull.head != approved, place.pull.merged_at) == (True, None)
        await place.looks()
        assert place.pull.merged_at is not None
        assert [one.commit for one in place.pull.reviews] == [approved]


@pytest.mark.slow
async def test_reviewers_whose_approval_an_update_dismissed_are_asked_again_once(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.needs_up_to_date = place.repo.dismisses_stale = True
        ok(await place.kit.contents.write(SITE, "OTHER.md", "Other\n", message="m"))
        await place.approves()
        for _ in range(3):
            await place.looks()
        assert place.pull.merged_at is None
        assert [one.login for one in place.pull.requested] == ["kit"]
        asked = [one for one in await newest_intents(place.site.services.outbox, 50) if one.kind == "review_request"]
        assert len(asked) == 1
        await place.approves()
        await place.looks()
        assert place.pull.merged_at is not None


async def test_a_pull_request_joins_a_merge_queue_once_and_its_task_is_completed_when_the_queue_merged_it(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        place.repo.has_merge_queue = True
        await place.approves()
        await place.looks()
        assert place.pull.queued_at is not None
        await place.looks()
        assert "queue" in (await place.line()).waits
        assert place.pull.merged_at is None
        town_github.network.clock = place.site.clock
        place.site.clock.ahead += QUEUE_WAIT.total_seconds()
        await place.looks()
        await place.cycle()
        assert place.pull.merged_at is not None
        assert await place.site.task(1) == ("completed", None)
        merges = [one for one in await newest_intents(place.site.services.outbox, 100) if one.kind == "merge"]
        assert [(one.state, one.result_kind) for one in merges] == [("done", "queue")]


@pytest.mark.slow
@pytest.mark.parametrize("thrown_out", [False, True])
async def test_where_a_merge_queue_takes_nothing_or_throws_it_out_the_owner_is_told_once_until_another_commit_comes(
    running_town: RunningTown, town_github: TownGitHub, *, thrown_out: bool
) -> None:
    async with merging(town_github, SOUL_SPEED="1") as place:
        place.repo.has_merge_queue, place.repo.queue_is_closed = True, not thrown_out
        await place.approves()
        await place.looks()
        place.pull.queued_at = None
        for _ in range(24):
            place.site.clock.ahead += 12 * 3_600
            await place.looks()
        services = place.site.services

        async def merges() -> int:
            return len([one for one in await newest_intents(services.outbox, 100) if one.kind == "merge"])

        told = [one.entry for one in await services.journal.recent(500) if one.entry.data.get("act") == "merge-refused"]
        assert (await merges(), len(told)) == (1, 1)
        assert "merge queue" in (await place.line()).waits
        place.repo.queue_is_closed = False
        await place.pushes()
        await place.approves()
        place.site.clock.ahead += 3_600
        await place.looks()
        assert (await merges(), place.pull.queued_at is not None) == (2, True)


async def test_what_the_owner_wants_left_alone_is_not_merged_until_they_take_it_up_again(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with merging(town_github) as place:
        orders = place.site.rooms().life.orders
        task = await orders.meant("1")
        await place.approves()
        await orders.leave(task)
        await place.looks()
        assert place.pull.merged_at is None
        await orders.take(task)
        await place.looks()
        assert place.pull.merged_at is not None
        merged = [one.body for one in await newest_intents(place.site.services.outbox, 20) if one.kind == "merge"]
        gated = [one.task for one in merged if isinstance(one, MergeBody)]
        assert gated == [f"{SITE.full_name}#1/task-1"], "the gate keeps it in if the task is left alone later"
