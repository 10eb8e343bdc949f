"""A SOUL that is asked to review a pull request reads its changes and reviews each commit once.

A SOUL that is called in a review, or in comments on lines of a pull request, answers where it was called.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.github.client import GitHub
from adapters.github.types import LineComment, Repo
from modules.services.explanation.rendering import tell
from modules.services.outbox.github_bodies import ReviewBody
from modules.services.outbox.types import ProposedAction
from tests.adapters.results import ok
from tests.loopback import github_at
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.code_review import SITE, open_reviewed, review
from tests.scenarios.github_talk import CLOCK, RULES, SAID, Place, acts, look, minding, open_place
from tests.town.github_place import needs_git
from town.github.values import Fault, StoredPull, StoredThread
from town.model.types import ChatRequest, Completion

SEEN = "SCENARIOS.md names a gate that squeaks, and not how one hears it: I would say from how far."
CHANGED = "A visitor can open the gate and hears it squeak."
REVIEW = "github_submit_review"


@dataclass
class Asking:
    """A repository with a pull request of `author`, for which `rowan` was asked for a review."""

    place: Place
    site: Repo
    author: GitHub
    number: int
    requests: list[ChatRequest]

    @property
    def pull(self) -> StoredPull:
        return self.place.repo.pulls[self.number]

    @property
    def reviews(self) -> list[tuple[str, str, str]]:
        return [(one.author.login, one.state, one.body.partition("\n\n<!--")[0]) for one in self.pull.reviews]

    async def write(self, text: str) -> None:
        """Add another commit to the branch."""
        name = "SCENARIOS.md"
        sha = await self._sha()
        ok(await self.author.contents.write(self.site, name, text, message="Tell", branch="tell", sha=sha))

    async def _sha(self) -> str:
        return ok(await self.author.contents.read(self.site, "SCENARIOS.md", ref="tell")).sha

    async def ask(self) -> None:
        ok(await self.author.pulls.request_reviewers(self.site, self.number, ["rowan"]))


def reviewing(rule: str) -> tuple[Callable[[ChatRequest], Completion], list[ChatRequest]]:
    """Return a mind that only reviews and finds `rule` in files, and the list of its review requests."""
    asked: list[ChatRequest] = []

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if REVIEW in names:
            asked.append(request)
            return call(REVIEW, body=SEEN)
        if RULES in request.messages[0].text:
            return Completion(text=json.dumps({"rule": rule}))
        return call("stay_silent", reason="nothing to add") if "stay_silent" in names else Completion(text="[]")

    return respond, asked


@asynccontextmanager
async def asking(
    town: RunningTown, *, author: str = "kit", place_of: str = "owner", rule: str = "none"
) -> AsyncIterator[Asking]:
    async with open_place(town, place_of) as place:
        town.mind.answer, asked = reviewing(rule)
        account = place.network.find(author) or place.network.create_account(author)
        owner = place.repo.owner
        place.repo.collaborators |= {author, "rowan"}
        first, second = (github_at(place.url, one.login, CLOCK, one.token) for one in (account, owner))
        site = Repo(owner.login, "site")
        begun = ok(await second.contents.write(site, "README.md", "# It\n\nMind its rules.\n", message="Begin"))
        ok(await second.refs.create(site, "tell", begun.commit_sha))
        ok(await second.contents.write(site, "SCENARIOS.md", CHANGED, message="Tell", branch="tell"))
        made = ok(await first.pulls.create(site, title="Scenarios", body="Part of #1", head="tell", base="main"))
        ok(await second.pulls.request_reviewers(site, made.number, ["rowan"]))
        if author == "stranger":
            place.repo.collaborators.discard(author)
        yield Asking(place, site, second, made.number, asked)
        await first.aclose()
        await second.aclose()


async def look_as_watcher(soul: RunningSoul) -> None:
    soul.app.services.workspaces.watch(Repo("owner", "site"))
    await look(soul)


@needs_git
async def test_in_a_workspace_a_review_of_known_work_is_left_to_whoever_runs_its_tests(
    running_town: RunningTown,
) -> None:
    async with asking(running_town) as asked, awake(asked.place.home(), clock=CLOCK) as soul:
        await look_as_watcher(soul)
        assert await acts(soul) == [("silent", "review-by-test")]
        assert asked.reviews == []
        assert not asked.requests
        url = f"https://github.com/owner/site/pull/{asked.number}"
        told = "\n".join(await tell(soul.app.services.database, url))
        assert "Why it did not answer owner/site#" in told
        assert "its review is given once its tests were run" in told


@needs_git
@pytest.mark.parametrize(
    ("author", "is_watched"), [("stranger", True), pytest.param("kit", False, marks=pytest.mark.slow)]
)
async def test_a_stranger_and_a_place_that_is_no_workspace_get_words_on_each_commit_and_no_verdict(
    running_town: RunningTown, author: str, *, is_watched: bool
) -> None:
    asked_by = asking(running_town, author=author)
    async with asked_by as asked, awake(asked.place.home(), clock=CLOCK) as soul:
        look_now = look_as_watcher if is_watched else look
        await look_now(soul)
        assert asked.reviews == [("rowan", "COMMENTED", SEEN)]
        assert await acts(soul) == [("reviewed", "review-requested")]
        assert CHANGED in asked.requests[0].messages[-1].text
        await asked.write(CHANGED + " From the road.")
        await asked.ask()
        await look_now(soul)
        assert [state for _, state, _ in asked.reviews] == ["COMMENTED", "COMMENTED"]
        assert asked.pull.reviews[1].commit == asked.pull.head
        await asked.ask()
        await look_now(soul)
        assert (await acts(soul))[-1] == ("noted", "review-given")
        assert len(asked.pull.reviews) == len(asked.requests)


@needs_git
@pytest.mark.slow
async def test_what_the_owner_had_approved_while_its_tests_ran_is_approved_once(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as reviewed, awake(reviewed.home(), clock=CLOCK) as soul:
        await reviewed.offer({"beds.py": "BEDS = 3  # counted\n"})
        await reviewed.ask()
        ordered = ReviewBody(repo=SITE.full_name, number=reviewed.number, event="APPROVE", commit_id=reviewed.pull.head)
        order = ProposedAction(ordered, part="owner", by_owner=True, is_given=True)
        assert (await soul.app.services.outbox.submit(order)).accepted
        await review(soul)
        assert reviewed.verdicts == [("rowan", "APPROVED")]


@needs_git
async def test_a_review_asked_for_below_a_comment_of_our_own_is_given(running_town: RunningTown) -> None:
    async with asking(running_town) as asked, awake(asked.place.home(), clock=CLOCK) as soul:
        rowan = asked.place.network.find("rowan")
        assert rowan
        asked.place.network.write_comment(asked.place.repo, asked.pull.issue, rowan, "I shall read it.")
        await look(soul)
        assert asked.reviews == [("rowan", "COMMENTED", SEEN)]


@needs_git
async def test_a_review_asked_for_in_a_repository_of_a_stranger_is_held_to_its_rules(
    running_town: RunningTown,
) -> None:
    asked_by = asking(running_town, place_of="stranger", rule="forbidden")
    async with asked_by as asked, awake(asked.place.home(), clock=CLOCK) as soul:
        asked.place.repo.collaborators.discard("rowan")
        await look(soul)
        assert await soul.app.services.outbox.held() == []
        assert [one for one, _ in await acts(soul)] == ["silent"]
        assert asked.reviews == []


@needs_git
async def test_elsewhere_a_review_of_the_owners_work_counts_as_a_turn_for_nobody_knows_who_asked(
    running_town: RunningTown,
) -> None:
    async with asking(running_town, author="owner", place_of="stranger") as asked:
        async with awake(asked.place.home(), clock=CLOCK) as soul:
            await look(soul)
            entries = await soul.app.services.journal.recent(100)
        assert asked.reviews == [("rowan", "COMMENTED", SEEN)]
        assert [one.entry.data.get("act") for one in entries].count("turn") == 1


@needs_git
async def test_while_a_review_waits_for_the_owners_yes_no_other_of_the_same_pull_request_is_written(
    running_town: RunningTown,
) -> None:
    asked_by = asking(running_town, place_of="stranger", rule="conditions")
    async with asked_by as asked, awake(asked.place.home(), clock=CLOCK) as soul:
        asked.place.repo.collaborators.discard("rowan")
        await look(soul)
        await asked.write(CHANGED + " From the road.")
        asked.place.repo.collaborators.add("rowan")
        await asked.ask()
        asked.place.repo.collaborators.discard("rowan")
        await look(soul)
        assert [one.kind for one in await soul.app.services.outbox.held()] == ["review"]
        assert len(asked.requests) == 1


SECOND = "The second gate squeaks less: I would oil it once a year."


@dataclass
class Reviewed:
    """A pull request of the owner, and its reviewer `kit`."""

    place: Place
    site: Repo
    kit: GitHub
    number: int

    @property
    def pull(self) -> StoredPull:
        return self.place.repo.pulls[self.number]

    @property
    def on_lines(self) -> list[tuple[int, str, int | None]]:
        """The comments of `rowan` on lines: the line, the text, and the id of the comment that it answers, or None."""
        own = (one for one in self.pull.line_comments if one.author.login == "rowan")
        return [(one.line, one.body.partition("\n\n<!--")[0], one.in_reply_to) for one in own]

    @property
    def in_thread(self) -> list[str]:
        own = (one for one in self.pull.issue.comments if one.author.login == "rowan")
        return [one.body.partition("\n\n<!--")[0] for one in own]

    async def review(self, body: str, **lines: str) -> None:
        """Review the pull request as `kit`; `lines` are comments by line number, such as `l2`."""
        said = [LineComment("GATES.md", int(line[1:]), text) for line, text in lines.items()]
        ok(await self.kit.pulls.create_review(self.site, self.number, event="COMMENT", body=body, comments=said))


@asynccontextmanager
async def reviewed(town: RunningTown) -> AsyncIterator[Reviewed]:
    async with open_place(town, "owner") as place:
        place.repo.collaborators.add("kit")
        owner, kit = (
            github_at(place.url, one.login, CLOCK, one.token)
            for one in filter(None, map(place.network.find, ("owner", "kit")))
        )
        site = Repo("owner", "site")
        begun = ok(await owner.contents.write(site, "README.md", "# It\n", message="Begin"))
        ok(await owner.refs.create(site, "gates", begun.commit_sha))
        ok(await owner.contents.write(site, "GATES.md", "One\nTwo\nThree\n", message="Tell", branch="gates"))
        made = ok(await owner.pulls.create(site, title="Gates", body="All of them", head="gates", base="main"))
        await owner.aclose()
        try:
            yield Reviewed(place, site, kit, made.number)
        finally:
            await kit.aclose()


async def look_twice(soul: RunningSoul) -> None:
    """Look at the thread, then at the conversations about lines that were found in it."""
    await look(soul)
    await look(soul)


@needs_git
@pytest.mark.slow
async def test_a_mention_on_a_line_is_answered_under_it_and_one_in_a_review_in_the_thread(
    running_town: RunningTown,
) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding(SAID, SECOND)
        await found.review("Fine.", l1="Too long.", l2="@rowan does this gate squeak?")
        assert [one.cause for one in _told(found.place)] == ["mention"]
        await look_twice(soul)
        asked = next(one for one in found.pull.line_comments if one.line == 2)
        assert found.on_lines == [(2, SAID, asked.id)]
        assert found.in_thread == []
        shown = next(
            one.messages[-1].text
            for one in running_town.mind.asked
            if "github_create_issue_comment" in {offer.name for offer in one.offers}
        )
        assert "GATES.md" in shown
        assert "+Two" in shown
        assert "does this gate squeak?" in shown
        assert "Too long." not in shown
        await look_twice(soul)
        assert len(found.on_lines) == 1
        await found.review("@rowan what do you say of the whole?")
        await look_twice(soul)
        assert found.in_thread == [SECOND]
        assert len(found.on_lines) == 1
        await look_twice(soul)
        assert [act for act, _ in await acts(soul)].count("commented") == 2


@needs_git
async def test_each_line_that_calls_gets_its_answer_once_over_a_lost_answer(running_town: RunningTown) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding(SAID, SECOND)
        await found.review("Two things.", l1="@rowan and this one?", l3="@rowan does this gate squeak?")
        found.place.faults.arm(Fault("lost_answer", "POST /repos/*/replies"))
        await look_twice(soul)
        await look_twice(soul)
        assert sorted(line for line, _, _ in found.on_lines) == [1, 3]
        assert {text for _, text, _ in found.on_lines} == {SAID, SECOND}


@needs_git
async def test_what_is_quoted_or_said_among_others_on_lines_calls_nobody(running_town: RunningTown) -> None:
    async with reviewed(running_town) as found, awake(found.place.home(), clock=CLOCK) as soul:
        running_town.mind.answer = minding()
        await found.review("`@rowan` is a name.", l1="> @rowan said so\n\nDid it?", l2="Too long.")
        await look_twice(soul)
        assert (found.on_lines, found.in_thread) == ([], [])


def _told(place: Place) -> list[StoredThread]:
    rowan = place.network.find("rowan")
    assert rowan
    return place.network.state.notifications.of(rowan)
