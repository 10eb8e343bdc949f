"""A SOUL reviews a pull request of its workspace by running its tests: real Git, a real sandbox, GitHub over HTTP."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.lives.tasks.review.handle import ReviewPlace
from modules.lives.tasks.review.revise import REVISION
from modules.runtime.home import Home
from modules.services.explanation.why import tell
from modules.services.plans.render import generate_plan_markdown
from modules.services.plans.types import Plan, Task
from tests.adapters.results import ok
from tests.loopback import to_loopback
from tests.modules.lives.tasks.test_task_stops import commands_running
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.github_talk import CLOCK, Place, open_place
from tests.town.github_place import needs_git
from town.github.values import StoredPull
from town.model.types import ChatRequest, Completion

SITE = Repo("owner", "site")
FOUND = "beds.py counts the beds in one place, and that is where I would look first."
MAKEFILE = "test:\n\tpython3 check.py\n"
CHECK = "import beds\nprint('not ok 1 - there are three beds') if beds.BEDS != 3 else None\nassert beds.BEDS == 3\n"


@dataclass
class Reviewed:
    """A repository with tests, and a pull request of `kit`, for which `rowan` may be asked for a review."""

    place: Place
    owner: GitHub
    kit: GitHub
    asked: list[ChatRequest] = field(default_factory=list)
    coded: list[ChatRequest] = field(default_factory=list)
    number: int = 0

    @property
    def pull(self) -> StoredPull:
        return self.place.repo.pulls[self.number]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        return [(one.author.login, one.state) for one in self.pull.reviews]

    def home(self, login: str = "rowan", **more: str) -> Home:
        """The home of a SOUL that has that account."""
        account = self.place.network.find(login)
        assert account
        names = {"AGENT_GITHUB_USERNAME": login, "AGENT_GITHUB_TOKEN": account.token}
        settings = {"GITHUB_API_URL": self.place.url, "SOUL_ALLOW_PRIVATE_NET": "on"}
        return self.place.town.make_home(login, **(settings | names | more))

    async def put(self, path: str, text: str, branch: str = "") -> None:
        """Let a file stand on a branch."""
        before = await self.owner.contents.read(SITE, path, ref=branch)
        sha = before.data.sha if before.success else ""
        ok(await self.owner.contents.write(SITE, path, text, message="Change it", branch=branch, sha=sha))

    async def offer(self, files: dict[str, str], *, branch: str = "more-beds", body: str = "As asked.") -> None:
        """Open a pull request of `kit` with these files."""
        main = ok(await self.owner.refs.get(SITE, "main"))
        ok(await self.owner.refs.create(SITE, branch, main.sha))
        for path, text in files.items():
            await self.put(path, text, branch)
        opened = await self.kit.pulls.create(SITE, title="More beds", body=body, head=branch, base="main")
        self.number = ok(opened).number

    async def ask(self) -> None:
        ok(await self.kit.pulls.request_reviewers(SITE, self.number, ["rowan"]))

    def judges(self, event: str, *codes: Completion, comments: Sequence[Mapping[str, object]] = ()) -> None:
        """Let the model give this verdict, whatever it is shown, and code so, one call after the other."""
        coding = iter(codes)

        def respond(request: ChatRequest) -> Completion:
            names = {offer.name for offer in request.offers}
            if "submit_review" in names:
                self.asked.append(request)
                return call("submit_review", event=event, body=FOUND, comments=comments)
            if "finish" in names:
                self.coded.append(request)
                return next(coding)
            return Completion(text="[]")

        self.place.town.mind.answer = respond


@asynccontextmanager
async def open_reviewed(town: RunningTown) -> AsyncIterator[Reviewed]:
    async with open_place(town, "owner") as place:
        place.repo.collaborators |= {"kit", "rowan"}
        accounts = [place.repo.owner, place.network.find("kit") or place.network.create_account("kit")]
        clients = [
            GitHub(
                api_url=place.url,
                login=one.login,
                token=one.token,
                clock=CLOCK,
                min_spacing_s=0,
                transport=to_loopback,
            )
            for one in accounts
        ]
        reviewed = Reviewed(place, owner=clients[0], kit=clients[1])
        for path, text in {"Makefile": MAKEFILE, "check.py": CHECK, "beds.py": "BEDS = 3\n"}.items():
            await reviewed.put(path, text)
        reviewed.judges("APPROVE")
        yield reviewed
        for client in clients:
            await client.aclose()


async def review(soul: RunningSoul) -> None:
    """Look for reviews to give, once, and send what came of it."""
    soul.app.services.workspaces.watch(SITE)
    await soul.app.scheduler.run_guarded("reviews")
    await soul.send()


async def code(soul: RunningSoul) -> None:
    """Look at the reviews of its own pull requests, and do what they ask for."""
    await review(soul)
    async with soul.sending():
        await soul.app.scheduler.run_guarded("tasks")
    await soul.send()


pytestmark = [needs_git, needs_sandbox]


async def test_what_fails_is_never_approved_and_is_named_until_another_commit_mends_it(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 4\n"})
        await place.ask()
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED")]
        (given,) = place.pull.reviews
        assert given.body.startswith(FOUND)
        assert "make test" in given.body
        assert "there are three beds" in given.body
        assert given.commit == place.pull.head
        await place.put("beds.py", "BEDS = 3  # and room for more\n", "more-beds")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED"), ("rowan", "APPROVED")]
        assert place.pull.reviews[1].commit == place.pull.head
        assert len(place.asked) == len(place.verdicts)
        url = f"https://github.com/{SITE.full_name}/pull/{place.number}"
        told = "\n".join(await tell(soul.app.services.database, url))
        assert "reviewed a pull request" in told
        assert "its tests pass" in told
        assert not list((soul.app.services.home.root / ".workrepos").iterdir())


@pytest.mark.slow
async def test_a_pause_ends_the_tests_of_a_review_at_once_and_the_review_is_given_later(
    running_town: RunningTown,
) -> None:
    child = f"97{os.getpid()}"
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        control, work = soul.app.services.control, soul.app.services.work
        await place.offer({"check.py": f"import subprocess\nsubprocess.run(['sleep', '{child}'])\n"})
        await place.ask()
        reviewing = asyncio.create_task(review(soul))
        await until(lambda: child in commands_running(), what="the tests")
        control.pause("dinner")
        await reviewing
        assert child not in commands_running()
        row = ReviewPlace(SITE, place.number, place.pull.head).row
        stopped = await work.get(row.kind, row.key)
        assert stopped
        assert (stopped.state, stopped.outcome, place.verdicts) == ("pending", "stopped", [])
        await place.put("check.py", f"{CHECK}# and more\n", "more-beds")
        control.resume()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


async def test_a_review_is_not_given_to_who_does_not_count_any_more_when_its_turn_comes(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        place.place.repo.collaborators.discard("kit")
        async with awake(place.home(), clock=CLOCK) as soul:
            work = soul.app.services.work
            row = ReviewPlace(SITE, place.number, place.pull.head).row
            await work.add(row)
            await review(soul)
            handled = await work.get(row.kind, row.key)
        assert handled
        assert (handled.state, handled.outcome) == ("pending", "not-counted")
        assert place.verdicts == []


@pytest.mark.slow
async def test_what_failed_before_is_told_and_does_not_keep_changes_from_being_approved(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("beds.py", "BEDS = 4\n")
        await place.offer({"more.py": "ROWS = 3\n"})
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        expected = soul.app.services.phrases.phrase("github.tests_still_failing", commands="make test")
        assert expected in place.pull.reviews[0].body


@pytest.mark.slow
async def test_what_breaks_only_together_with_what_was_merged_meanwhile_is_not_approved(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("soil.py", "BEDS = 3\n")
        await place.offer({"beds.py": "import soil\nBEDS = soil.BEDS\n"})
        await place.put("soil.py", "ROWS = 3\n")
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED")]
        assert "no attribute" in place.pull.reviews[0].body


@pytest.mark.slow
async def test_a_commit_is_reviewed_again_once_its_base_changed_the_same_file_and_not_before(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("beds.py", "BEDS = 3\n\n\n\nROWS = 1\n")
        await place.offer({"beds.py": "BEDS = 3\n\n\n\nROWS = 2\n"})
        await place.ask()
        await review(soul)
        await place.put("soil.py", "SOIL = 1\n")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        place.judges("REQUEST_CHANGES")
        await place.put("beds.py", "BEDS = 3  # so many\n\n\n\nROWS = 1\n")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED"), ("rowan", "CHANGES_REQUESTED")]
        assert len(place.asked) == len(place.verdicts)


@pytest.mark.slow
async def test_words_on_a_line_stand_there_if_the_changes_show_it_and_in_the_text_if_not(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3\n# as before\n"})
        said = [("beds.py", 2, "As before?"), ("beds.py", 9, "Nothing there."), ("check.py", 1, "Not changed.")]
        many = [("beds.py", 1, f"Again, {number}.") for number in range(10)]
        comments = [{"path": path, "line": line, "body": body} for path, line, body in said + many]
        place.judges("APPROVE", comments=comments)
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        given = [(one.path, one.line, one.body) for one in place.pull.line_comments]
        assert given == [said[0], *many[:9]]
        assert all(words in place.pull.reviews[0].body for _, _, words in (*said[1:], many[9]))


@pytest.mark.slow
async def test_a_pull_request_of_a_person_is_left_alone_unless_somebody_asks(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # as before\n"})
        await review(soul)
        assert place.verdicts == []
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


PLAN = Plan("Beds", goal="All beds are counted.", tasks=(Task(1, "More beds", "in_progress", "kit"),))
BRANCH = "task-1-more-beds"
FIX = (
    call("read_file", path="beds.py"),
    call("write_file", path="beds.py", content="BEDS = 3  # counted\n"),
    call("finish", summary="Three beds again."),
)


async def task_with_a_fault(place: Reviewed) -> None:
    """Let a task of `kit` stand in a pull request whose test fails."""
    plan = await place.owner.create_issue(SITE, f"[PLAN] {PLAN.title}", generate_plan_markdown(PLAN), labels=("plan",))
    await place.offer({"beds.py": "BEDS = 4\n"}, branch=BRANCH, body=f"Part of #{ok(plan).number}, as planned.")
    await place.ask()


@pytest.mark.slow
async def test_what_a_review_asks_for_is_pushed_by_the_author_and_approved_in_the_second_round(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        place.judges("APPROVE", *FIX)
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            await code(kit)
            await code(kit)
            await review(rowan)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED"), ("rowan", "APPROVED")]
        assert place.pull.reviews[1].commit == place.pull.head
        assert len(place.place.repo.pulls) == 1
        assert "there are three beds" in place.coded[0].messages[-1].text
        git = place.place.network.git(place.place.repo)
        assert [one.path for one in await git.changes(place.pull.base, place.pull.head)] == ["beds.py"]
        assert len(place.coded) == len(FIX)


@pytest.mark.slow
async def test_a_round_that_waits_for_the_owner_is_pushed_after_a_restart_and_reviewed_again(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        place.judges("APPROVE", *FIX)
        async with awake(place.home(), clock=CLOCK) as rowan:
            await review(rowan)
        home, reviewed = place.home("kit", SOUL_APPROVAL="drafts"), place.pull.head
        async with awake(home, clock=CLOCK) as kit:
            await code(kit)
        async with awake(home, clock=CLOCK) as kit:
            outbox, work = kit.app.services.outbox, kit.app.services.work
            (push,) = await outbox.held()
            (row,) = await work.newest(REVISION, 9)
            assert (push.kind, row.state, row.outcome) == ("push", "pending", "needs-owner")
            assert place.pull.head == reviewed
            await outbox.approve(push.id)
            await kit.send()
            assert place.pull.head != reviewed
            CLOCK.ahead += 61
            await code(kit)
            (asked,) = await outbox.held()
            await outbox.approve(asked.id)
            await kit.send()
            (row,) = await work.newest(REVISION, 9)
            assert not list((kit.app.services.home.root / ".workrepos").iterdir())
        assert (asked.kind, row.state, row.outcome) == ("review_request", "done", "pushed")
        assert [one.login for one in place.pull.requested] == ["rowan"]
        assert len(place.coded) == len(FIX)


@pytest.mark.slow
async def test_after_two_rounds_the_owner_is_told_once_and_nothing_more_is_coded(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        rounds = [
            change
            for number in range(3)
            for change in (
                call("write_file", path="beds.py", content=f"BEDS = 3  # {number}\n"),
                call("finish", summary="Counted again."),
            )
        ]
        place.judges("REQUEST_CHANGES", *rounds)
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            for _ in range(4):
                await review(rowan)
                await code(kit)
            entries = await kit.app.services.journal.recent(200)
        assert [state for _, state in place.verdicts] == ["CHANGES_REQUESTED"] * 3
        assert len(place.coded) == 4
        told = [one.entry for one in entries if one.entry.data.get("act") == "review-stuck"]
        assert [(one.data["code"], one.line) for one in told] == [("rounds-used", "warn")]
