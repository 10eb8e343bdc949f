"""A SOUL that is asked to review a pull request reads its changes, and reviews each commit once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.services.explanation.why import tell
from tests.adapters.results import ok
from tests.loopback import to_loopback
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.github_talk import CLOCK, RULES, Place, acts, look, open_place
from tests.town.github_place import needs_git
from town.github.values import StoredPull
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
        """Put another commit on the branch."""
        name = "SCENARIOS.md"
        sha = await self._sha()
        ok(await self.author.contents.write(self.site, name, text, message="Tell", branch="tell", sha=sha))

    async def _sha(self) -> str:
        return ok(await self.author.contents.read(self.site, "SCENARIOS.md", ref="tell")).sha

    async def ask(self) -> None:
        ok(await self.author.pulls.request_reviewers(self.site, self.number, ["rowan"]))


def reviewing(rule: str) -> tuple[Callable[[ChatRequest], Completion], list[ChatRequest]]:
    """Reviews what it is asked to; comments nowhere; finds `rule` in files."""
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
        first, second = (
            GitHub(
                api_url=place.url,
                login=one.login,
                token=one.token,
                clock=CLOCK,
                min_spacing_s=0,
                transport=to_loopback,
            )
            for one in (account, owner)
        )
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
