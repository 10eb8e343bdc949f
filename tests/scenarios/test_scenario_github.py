"""The SOUL is called into threads on GitHub, and comments there once, over restarts and errors."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from common.clock import SystemClock
from modules.runtime.home import Home
from modules.services.inbox import threads
from tests.running_town import RunningSoul, RunningTown, awake, call
from town.github.faults import Fault, Faults
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion
from town.serving import serve

SAID = "The narrow one: its menu stays in view. I would measure both for a week with the same three pages."


@dataclass
class Place:
    """The town's GitHub with one repository, an issue in it, and a home for `rowan`, who has an account there."""

    town: RunningTown
    network: GitHubNetwork
    faults: Faults
    url: str
    repo: StoredRepo
    issue: StoredIssue

    def home(self, **more: str) -> Home:
        rowan = self.network.find("rowan")
        assert rowan
        settings = {
            "GITHUB_API_URL": self.url,
            "AGENT_GITHUB_USERNAME": "rowan",
            "AGENT_GITHUB_TOKEN": rowan.token,
            "OWNER_GITHUB_USERNAME": "owner",
            "SOUL_ALLOW_PRIVATE_NET": "on",
        }
        return self.town.make_home("rowan", **(settings | more))

    def post_link(self, by: str = "owner") -> None:
        """A post to the SOUL that links to the issue."""
        url = f"https://github.com/{self.repo.full_name}/issues/{self.issue.number}"
        self.town.network.post_as(self.town.account(by), f"@rowan.test have a look at {url}")

    def say(self, login: str, text: str) -> None:
        account = self.network.find(login) or self.network.create_account(login)
        self.network.write_comment(self.repo, self.issue, account, text)

    @property
    def comments(self) -> list[str]:
        """What `rowan` said there, without the marks that nobody sees."""
        own = (one.body for one in self.issue.comments if one.author.login == "rowan")
        return [text.partition("\n\n<!--")[0] for text in own]


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[Place]:
    async with _place(running_town, "owner") as found:
        yield found


@asynccontextmanager
async def _place(town: RunningTown, owner: str) -> AsyncIterator[Place]:
    network, faults = GitHubNetwork(clock=SystemClock()), Faults()
    network.create_account("rowan")
    repo = network.create_repo(network.create_account(owner), "site", collaborators=["rowan"])
    issue = network.open_issue(repo, network.create_account("kit"), title="Which layout?", body="Narrow or wide?")
    async with serve(github_app(network, faults=faults)) as url:
        yield Place(town, network, faults, url, repo, issue)


def minding(*said: str) -> Callable[[ChatRequest], Completion]:
    """Comments with these texts, one after the other; stays silent on Bluesky."""
    given = iter(said or (SAID,))

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if "github_create_issue_comment" in names:
            return call("github_create_issue_comment", body=next(given))
        if "stay_silent" in names:
            return call("stay_silent", reason="nothing to add")
        return Completion(text="[]")

    return respond


async def look(soul: RunningSoul) -> None:
    """Look at Bluesky, then at GitHub, once those may speak who go first, and send what came of it."""
    await soul.look()
    await soul.app.scheduler.run_guarded("github-awareness")
    soul.passes(200)
    await soul.app.scheduler.run_guarded("github-awareness")
    await soul.send()


async def acts(soul: RunningSoul) -> list[tuple[str, str]]:
    return [
        (one.entry.data["act"], one.entry.data["code"])
        for one in await soul.decisions()
        if one.entry.loop == "github-awareness"
    ]


async def test_a_thread_that_the_owner_links_to_gets_one_comment(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home) as soul:
        await look(soul)
        await look(soul)
        assert place.comments == [SAID]
        assert await acts(soul) == [("commented", "owner-request")]
    asked = next(one for one in place.town.mind.asked if "github_create_issue_comment" in {o.name for o in one.offers})
    assert {offer.name for offer in asked.offers} == {"github_create_issue_comment", "github_stay_silent"}
    told = "\n".join(message.text for message in asked.messages)
    assert "Narrow or wide?" in told
    assert "Your owner showed you this thread" in told


async def test_a_thread_is_not_answered_because_a_stranger_links_to_it(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link(by="ada")
    async with awake(home) as soul:
        await look(soul)
        assert place.comments == []
        assert await acts(soul) == [("silent", "not-addressed")]


async def test_a_comment_that_was_accepted_before_a_crash_is_not_made_again(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    place.post_link()
    async with awake(home) as soul:
        await look(soul)

        def unsettle(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE github_threads SET state = 'pending'")

        await soul.app.services.database.run(unsettle)
    async with awake(home) as soul:
        await look(soul)
        assert await acts(soul) == [("commented", "owner-request"), ("commented", "")]
    assert place.comments == [SAID]


async def test_a_thread_that_cannot_be_read_waits_and_is_answered_later(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home) as soul:
        place.faults.arm(Fault("server_error", "GET /repos/*", times=100))
        await look(soul)
        assert place.comments == []
    async with awake(home) as soul:
        place.faults.clear()
        await look(soul)
    assert place.comments == [SAID]


async def test_a_thread_that_is_gone_is_given_up(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    place.network.delete_issue(place.repo, place.issue, place.repo.owner)
    async with awake(home) as soul:
        await look(soul)
        assert await acts(soul) == [("dropped", "")]


async def test_in_a_repository_of_somebody_else_a_comment_waits_for_the_owners_yes(running_town: RunningTown) -> None:
    running_town.mind.answer = minding()
    async with _place(running_town, "stranger") as place:
        home = place.home()
        place.post_link()
        async with awake(home) as soul:
            await look(soul)
            assert place.comments == []
            (draft,) = await soul.app.services.outbox.held()
            assert "somebody else's: stranger/site" in (draft.error or "")
            await look(soul)
            await soul.app.services.outbox.approve(draft.id)
            await soul.send()
            assert place.comments == [SAID]


async def test_a_comment_that_must_not_leave_is_sent_back_once_and_then_given_up(place: Place) -> None:
    place.town.mind.answer = minding("I'm Rowan, an AI agent. The narrow one.", "Let me introduce myself: Rowan.")
    home = place.home()
    place.post_link()
    async with awake(home) as soul:
        await look(soul)
        assert await acts(soul) == [("silent", "owner-request")]
    assert place.comments == []


async def test_our_own_name_is_not_mentioned_in_what_leaves(place: Place) -> None:
    place.town.mind.answer, home = minding("As @rowan says to @kit: the narrow one, for its menu."), place.home()
    place.post_link()
    async with awake(home) as soul:
        await look(soul)
    assert place.comments == ["As rowan says to @kit: the narrow one, for its menu."]


async def test_a_social_life_looks_at_no_thread_and_has_no_tool_for_one(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home, social_only=True) as soul:
        await look(soul)
        assert place.comments == []
        names = {loop.name for loop in soul.app.scheduler.states()}
        assert "github-awareness" not in names
        assert await soul.app.services.database.run(threads.waiting) == []
