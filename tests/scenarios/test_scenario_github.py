"""The SOUL is called into threads on GitHub, and comments there once, over restarts and errors."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from modules.runtime.home import Home
from modules.services.inbox import threads
from tests.hasty_clock import HastyClock
from tests.running_town import HASTE_STEP_BY_STEP, RunningSoul, RunningTown, awake, call
from town.github.faults import Fault, Faults
from town.github.git_values import NO_COMMIT, Signature
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredIssue, StoredRepo
from town.model.types import ChatRequest, Completion
from town.serving import serve

CLOCK = HastyClock(HASTE_STEP_BY_STEP)
"""The time of the SOUL, and of GitHub: they agree on it."""
RULES = "The sentences are from the rules of a software project."
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
    network, faults = GitHubNetwork(clock=CLOCK, git_folder=town.root / "git"), Faults()
    network.create_account("rowan")
    repo = network.create_repo(
        network.create_account(owner), "site", collaborators=["rowan"] if owner == "owner" else []
    )
    issue = network.open_issue(repo, network.create_account("kit"), title="Which layout?", body="Narrow or wide?")
    async with serve(github_app(network, faults=faults)) as url:
        yield Place(town, network, faults, url, repo, issue)


def minding(*said: str, rule: str = "none") -> Callable[[ChatRequest], Completion]:
    """Comments with these texts, one after the other; stays silent on Bluesky; finds `rule` in files."""
    given = iter(said or (SAID,))

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if "github_create_issue_comment" in names:
            return call("github_create_issue_comment", body=next(given))
        if RULES in request.messages[0].text:
            return Completion(text=json.dumps({"rule": rule}))
        if "stay_silent" in names:
            return call("stay_silent", reason="nothing to add")
        return Completion(text="[]")

    return respond


async def look(soul: RunningSoul) -> None:
    """Look at Bluesky, then at GitHub, once those may speak who go first, and send what came of it."""
    await soul.look()
    soul.passes(1)
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
    async with awake(home, clock=CLOCK) as soul:
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
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert place.comments == []
        assert await acts(soul) == [("silent", "not-addressed")]


async def test_a_comment_that_was_accepted_before_a_crash_is_not_made_again(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)

        def unsettle(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE github_threads SET state = 'pending'")

        await soul.app.services.database.run(unsettle)
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == [("commented", "owner-request"), ("commented", "")]
    assert place.comments == [SAID]


async def test_a_thread_that_cannot_be_read_waits_and_is_answered_later(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("server_error", "GET /repos/*", times=100))
        await look(soul)
        assert place.comments == []
    async with awake(home, clock=CLOCK) as soul:
        place.faults.clear()
        await look(soul)
    assert place.comments == [SAID]


async def test_a_thread_that_is_gone_is_given_up(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    place.network.delete_issue(place.repo, place.issue, place.repo.owner)
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == [("dropped", "")]


@asynccontextmanager
async def in_foreign_place(town: RunningTown, **files: str) -> AsyncIterator[Place]:
    """A place in a repository of somebody else with these files, by name without the ending."""
    async with _place(town, "stranger") as found:
        author = Signature("Stranger", "stranger@example.com", found.network.clock.now())
        git = found.network.git(found.repo)
        blobs = {f"{name}.md": await git.write_blob(text.encode()) for name, text in files.items()}
        if blobs:
            sha = await git.write_commit(await git.tree_with(None, blobs), [], "Begin", author)
            await git.set_ref("refs/heads/main", sha, old=NO_COMMIT)
        yield found


FOREIGN = [
    ("no rules", {"CONTRIBUTING": "Write tests."}, "none", "commented", 0),
    ("nothing at all", {}, "none", "commented", 0),
    ("a plain ban", {"CONTRIBUTING": "Be kind. AI-generated comments are not accepted."}, "allowed", "silent", 0),
    ("a ban that a model reads", {"AGENTS": "No place for autonomous accounts, please."}, "forbidden", "silent", 1),
    ("conditions", {"AI_POLICY": "You must disclose AI."}, "conditions", "held", 1),
    ("an answer that cannot be read", {"AI_POLICY": "You must disclose AI."}, "well", "held", 2),
    ("a welcome", {"AI_POLICY": "AI agents are welcome here."}, "allowed", "commented", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "rule", "act", "asked"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN]
)
async def test_what_a_repository_says_of_ai_is_read_before_the_first_word_there(
    running_town: RunningTown, files: dict[str, str], rule: str, act: str, asked: int
) -> None:
    running_town.mind.answer = minding(rule=rule)
    async with in_foreign_place(running_town, **files) as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            held = await soul.app.services.outbox.held()
            assert place.comments == ([SAID] if act == "commented" else [])
            assert len(held) == (act == "held")
            assert (await acts(soul))[-1][0] == ("silent" if act == "silent" else "commented")
            read = [one for one in running_town.mind.asked if RULES in one.messages[0].text]
            assert len(read) == asked


async def test_where_it_is_not_clear_the_owner_decides_and_decides_for_the_next_comment_too(
    running_town: RunningTown,
) -> None:
    said = iter([SAID, "Measure the wide one as well, then."])
    running_town.mind.answer = minding(*said, rule="conditions")
    async with in_foreign_place(running_town, AI_POLICY="You must disclose AI.") as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            (draft,) = await soul.app.services.outbox.held()
            assert "AI_POLICY.md has conditions" in (draft.error or "")
            await look(soul)
            assert place.comments == []
            await soul.app.services.outbox.approve(draft.id)
            await soul.send()
            assert place.comments == [SAID]
            place.say("kit", "And then?")
            place.post_link()
            await look(soul)
            assert await soul.app.services.outbox.held() == []
    assert place.comments == [SAID, "Measure the wide one as well, then."]


async def test_where_pull_requests_are_kept_to_its_own_people_the_owner_decides(running_town: RunningTown) -> None:
    running_town.mind.answer = minding()
    async with in_foreign_place(running_town) as place:
        place.repo.pull_policy = "collaborators_only"
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            await look(soul)
            assert place.comments == []
            assert len(await soul.app.services.outbox.held()) == 1


async def test_while_its_rules_cannot_be_read_nothing_is_said(running_town: RunningTown) -> None:
    running_town.mind.answer = minding()
    async with in_foreign_place(running_town, CONTRIBUTING="No AI.") as place:
        home = place.home()
        place.post_link()
        async with awake(home, clock=CLOCK) as soul:
            place.faults.arm(Fault("server_error", "GET /repos/*/contents/*", times=100))
            await look(soul)
            assert place.comments == []
            assert await acts(soul) == []
        async with awake(home, clock=CLOCK) as soul:
            place.faults.clear()
            await look(soul)
            assert await acts(soul) == [("silent", "unwelcome")]


async def test_a_comment_that_must_not_leave_is_sent_back_once_and_then_given_up(place: Place) -> None:
    place.town.mind.answer = minding("I'm Rowan, an AI agent. The narrow one.", "Let me introduce myself: Rowan.")
    home = place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == [("silent", "owner-request")]
    assert place.comments == []


async def test_our_own_name_is_not_mentioned_in_what_leaves(place: Place) -> None:
    place.town.mind.answer, home = minding("As @rowan says to @kit: the narrow one, for its menu."), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
    assert place.comments == ["As rowan says to @kit: the narrow one, for its menu."]


async def test_a_social_life_looks_at_no_thread_and_has_no_tool_for_one(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK, social_only=True) as soul:
        await look(soul)
        assert place.comments == []
        names = {loop.name for loop in soul.app.scheduler.states()}
        assert "github-awareness" not in names
        assert await soul.app.services.database.run(threads.waiting) == []


async def test_who_mentions_the_soul_in_an_issue_is_answered_once_and_the_notification_is_read(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        place.say("kit", "@rowan which of the two loses fewer readers?")
        await look(soul)
        await look(soul)
        assert place.comments == [SAID]
        assert (await acts(soul))[0] == ("commented", "mentioned")
        rowan = place.network.find("rowan")
        assert rowan
        assert place.network.state.notifications.of(rowan) == []
    known = json.loads((home.memory / "github_engagement.json").read_text())["conversations"]["owner/site#1"]
    assert (known["state"], known["source"]) == ("awaiting_response", "github_notification")


async def test_a_mention_is_not_lost_with_the_process_or_with_the_answers_of_github(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    place.say("kit", "@rowan which of the two loses fewer readers?")
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("bad_gateway", "GET /notifications*", times=10))
        await look(soul)
        assert "cannot be read" in "".join(one.entry.summary for one in await soul.app.services.journal.recent(30))
    place.faults.clear()
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("lost_answer", "GET /repos/*", times=100))
        await look(soul)
        assert len(await soul.app.services.database.run(threads.waiting)) == 1
    place.faults.clear()
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("lost_answer", "POST /repos/*/comments"))
        await look(soul)

        def unsettle(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE github_threads SET state = 'pending'")

        await soul.app.services.database.run(unsettle)
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        await look(soul)
    assert place.comments == [SAID]


async def test_who_goes_on_after_the_answer_is_heard_only_where_they_call_the_soul(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "By the third week, then."), place.home()
    place.say("kit", "@rowan which of the two loses fewer readers?")
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        place.say("kit", "Thanks.")
        await look(soul)
        assert place.comments == [SAID]
        place.say("kit", "And until when would you measure, @rowan?")
        await look(soul)
    assert place.comments == [SAID, "By the third week, then."]


async def test_a_thread_that_ends_a_workspace_is_left_alone(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    owner = place.repo.owner
    place.network.change_issue(place.repo, place.issue, owner, labels=["finished"])
    place.say("kit", "@rowan is it done?")
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert (await acts(soul))[0] == ("silent", "finished")


async def test_a_look_at_the_notifications_costs_nothing_where_nothing_changed(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    async with awake(home, clock=CLOCK) as soul:
        left = []
        for _ in range(12):
            soul.passes(120)
            await soul.app.scheduler.run_guarded("github-awareness")
            left.append(soul.app.services.github.rate.remaining)
    assert left[0] - left[-1] <= 1
