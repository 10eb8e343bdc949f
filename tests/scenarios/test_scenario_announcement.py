"""Work on GitHub is announced on Bluesky once, if it is public and worth a post and the owner wants that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from adapters.github.types import Repo
from common.facts import QuestionFacts
from modules.services.commitments.acts import CommitmentKept
from modules.services.commitments.naming import QueuedCommitment
from modules.services.own_feed.announcement import (
    ANNOUNCEMENT,
    AnnouncementContext,
    announceable,
    problem_of,
)
from tests.modules.services.commitments.commitment_values import queued, wanted
from tests.running_town import RunningSoul, RunningTown, awake
from tests.town_github import TownGitHub
from town.github.values import StoredRepo
from town.model.service import Fault
from town.model.types import ChatRequest, Completion

URL = "https://github.com/acme/site/issues/1"
TITLE = "Clock stops at midnight"
POST = f"Clocks that stop at midnight tell of time zones. What we saw: {URL}"
WORK = AnnouncementContext(URL, TITLE, Repo("acme", "site"))
LATER, HOURS_S = 31.0, 240.0


@dataclass
class Editor:
    """A mind that decides on an announcement, then writes it; `asked` holds the questions."""

    decision: str = "Yes."
    drafts: list[str] = field(default_factory=lambda: [POST])
    asked: list[str] = field(default_factory=list)

    def answer(self, request: ChatRequest) -> Completion:
        about = request.facts.about
        question = about.question if isinstance(about, QuestionFacts) else ""
        self.asked.append(question or "other")
        if question == "announcement-decision":
            return Completion(self.decision)
        if question == "announcement-post":
            return Completion(self.drafts.pop(0) if len(self.drafts) > 1 else self.drafts[0])
        return Completion("[]")


@dataclass
class Place:
    """A SOUL's home with an account on GitHub, and the editor as its mind."""

    github: TownGitHub
    editor: Editor = field(default_factory=Editor)

    @property
    def town(self) -> RunningTown:
        return self.github.town

    @property
    def repo(self) -> StoredRepo:
        return self.github.repo

    @asynccontextmanager
    async def soul(self, *, announce: str = "on") -> AsyncIterator[RunningSoul]:
        home = self.github.make_home(AI_GATEWAY_FACTS="on", OWNER_GITHUB_USERNAME="acme", SOUL_ANNOUNCE=announce)
        self.town.mind.answer = self.editor.answer
        async with awake(home) as life:
            yield life

    def announced(self) -> list[str]:
        return [text for text in self.town.texts("rowan") if URL in text]


@pytest.fixture
def place(town_github: TownGitHub) -> Place:
    return Place(town_github)


def _kept(**more: Any) -> QueuedCommitment:
    issues = [{"number": 1, "title": TITLE, "url": URL}]
    return replace(queued(status="completed", description=TITLE, **more), result={"issues": issues, "count": 1})


async def _receive(life: RunningSoul, kept: QueuedCommitment) -> None:
    events = life.app.services.events
    events.publish(CommitmentKept(kept))
    await events.settle()
    await _announces(life)


async def _announces(life: RunningSoul) -> None:
    """Run the loop for work once, some hours later, and send its acts."""
    life.passes(HOURS_S)
    await life.app.scheduler.run_guarded("work")
    await life.send()


async def _told(life: RunningSoul) -> list[str]:
    entries = await life.app.services.journal.recent(100)
    told = [stored.entry for stored in entries if stored.entry.data.get("kind") == ANNOUNCEMENT]
    return [f"{entry.summary} | {entry.reason}" for entry in told]


async def test_what_is_worth_it_is_posted_once_with_its_link_also_after_a_restart(place: Place) -> None:
    async with place.soul() as life:
        life.app.services.events.publish(CommitmentKept(_kept()))
        await life.app.services.events.settle()
        await life.app.scheduler.run_guarded("work")
        assert place.announced() == []
        assert life.app.services.relationships.reflection.events == 1
        assert [one.code for one in life.app.services.relationships.reflection.insights] == ["Announced"]
    async with place.soul() as life:
        await _receive(life, _kept())
        assert place.announced() == [POST]
        assert place.editor.asked.count("announcement-decision") == 1


@pytest.mark.parametrize(("source", "trust"), [("space", "peer"), ("found", "stranger")])
async def test_a_commitment_of_a_room_is_an_experience_and_no_memory_beside_that_of_its_issue(
    place: Place, source: str, trust: str
) -> None:
    async with place.soul(announce="off") as life:
        await _receive(life, _kept(source=source))
        helped = [one for one in await life.app.services.experiences.open() if one.type == "helped_someone"]
        assert [(one.about, one.trust) for one in helped] == [(TITLE, trust)]
        assert await life.app.services.knowledge.stores.memories.listed() == []


async def test_an_issue_that_was_committed_to_in_a_room_is_announced_when_it_is_open(place: Place) -> None:
    place.editor.drafts = [f"A clock that stops at midnight: {place.github.url}/acme/site/issues/1"]
    async with place.soul() as life:
        assert (await life.app.lives.queue.enqueue_commitment(wanted(TITLE))).new
        life.passes(LATER)
        for _ in range(4):
            life.passes(1)
            await life.app.lives.commitments.run()
            await life.app.services.outbox.deliver_due()
        await life.app.services.events.settle()
        await life.app.scheduler.run_guarded("work")
        posts = await life.app.services.outbox.of_kind("post", 10)
    assert [issue.title for issue in place.repo.issues.values() if issue] == [TITLE]
    assert [post.body.public_text for post in posts] == place.editor.drafts


async def test_what_is_not_worth_it_is_not_posted(place: Place) -> None:
    place.editor.decision = "Not yes"
    async with place.soul() as life:
        await _receive(life, _kept())
        assert f"Not announced: {TITLE} | the model does not find it worth a post" in await _told(life)
    assert place.announced() == []
    assert "announcement-post" not in place.editor.asked


async def test_a_repository_that_is_private_or_cannot_be_read_is_told_of_to_nobody(place: Place) -> None:
    async with place.soul() as life:
        place.repo.private = True
        await life.app.services.work.add(replace(WORK, url=f"{URL}1", repo=Repo("acme", "gone")).row)
        await _receive(life, _kept())
        private, unread = await _told(life)
    assert private == f"Not announced: {TITLE} | the repository is private"
    assert "cannot be read" in unread
    assert place.announced() == []
    assert "announcement-decision" not in place.editor.asked


async def test_nothing_is_announced_where_the_owner_did_not_ask_for_it(place: Place) -> None:
    async with place.soul(announce="off") as life:
        await _receive(life, _kept())
        assert await _told(life) == []
    assert place.announced() == []
    assert "announcement-decision" not in place.editor.asked


async def test_a_model_that_fails_leaves_the_commitment_kept_and_the_reason_in_the_journal(
    place: Place,
) -> None:
    async with place.soul() as life:
        assert (await life.app.lives.queue.enqueue_commitment(wanted(TITLE))).new
        life.passes(LATER)
        place.town.mind_faults.arm(Fault("bad_gateway", times=10_000))
        for _ in range(4):
            life.passes(1)
            await life.app.lives.commitments.run()
            await life.app.services.outbox.deliver_due()
        await life.app.services.events.settle()
        await life.app.scheduler.run_guarded("work")
        (commitment,) = life.app.lives.queue.all()
        errors = await life.app.services.journal.recent(100, kinds=["error"])
    assert commitment.status == "completed"
    assert any(one.entry.summary.startswith(f"Not announced yet: {TITLE}: ") for one in errors)


async def test_a_draft_that_cannot_be_sent_is_asked_for_once_more_and_then_again_later(place: Place) -> None:
    too_long = f"{'so very ' * 40}{URL}"
    async with place.soul() as life:
        place.editor.drafts = ["What we saw: https://example.com", too_long, POST]
        await _receive(life, _kept())
        assert place.announced() == []
        assert await _told(life) == [f"Not announced: {TITLE} | the model found no words that fit"]
        place.editor.drafts = [too_long, POST]
        await _announces(life)
        assert place.announced() == [POST]


async def test_the_link_is_put_behind_a_draft_without_one(place: Place) -> None:
    async with place.soul() as life:
        place.editor.drafts = ["Clocks that stop at midnight tell of time zones."]
        await _receive(life, _kept())
    assert place.announced() == [f"Clocks that stop at midnight tell of time zones. {URL}"]


def test_only_an_issue_that_was_not_told_of_on_bluesky_is_for_strangers() -> None:
    assert announceable(_kept()) == WORK
    assert announceable(_kept(source="bluesky", thread="at://did:plc:kit/app.bsky.feed.post/1")) is None
    assert announceable(_kept(foundRoom=True)) is None
    assert announceable(_kept(memo=True)) is None
    assert announceable(_kept(kind="comment_issue")) is None
    assert announceable(replace(_kept(), result=None)) is None


def test_a_draft_holds_the_one_link_and_is_short_enough() -> None:
    assert problem_of(POST, URL) is None
    assert problem_of(f"{POST}2", URL) == "Without Link"
    assert problem_of(f"{POST} and https://example.com", URL) == "Other Link"
    assert problem_of(f"{'so ' * 100}{URL}", URL) == "Too Long"
    assert problem_of(f"**Clocks** that stop: {URL}", URL) == "Markup"
