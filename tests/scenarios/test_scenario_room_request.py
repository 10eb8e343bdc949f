"""A host's request in a room of whole SOULs: one artefact, told once, whatever the minds and the host do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from adapters.github.types import Repo
from adapters.space.types import Claimed
from modules.lives.space.host_request import SPACE_MAX_REOPENS
from modules.lives.space.policy import elect_action_owner
from modules.services.commitments.policy import COMMITMENT_MAX_ATTEMPTS
from tests.running_town import RunningTown, call
from tests.scenarios.room_society import (
    BODY,
    REPO,
    REQUEST,
    Asked,
    Decide,
    Quick,
    Society,
    Soul,
    an_issue,
    diligent,
    open_society,
    quiet,
    says,
)
from tests.shipped_skills import phrase
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow

FOUR = ("marvin", "rebecca", "peterben", "odile")


async def all_in(stack: AsyncExitStack, society: Society, *names: str) -> None:
    for name in names:
        await stack.enter_async_context(society.soul(name))


def eager(asked: Asked) -> Completion:
    """Commits whatever the notes say."""
    return says(f"The clock is on my desk already, says {asked.name}.", an_issue())


@pytest.mark.parametrize("mind", [diligent, eager], ids=["each-keeps-to-its-part", "everyone-wants-to-do-it"])
async def test_of_four_souls_one_opens_the_issue_in_full_and_tells_it_once(
    running_town: RunningTown, mind: Decide
) -> None:
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.default = mind
        await all_in(stack, society, *FOUR)
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        await society.passes(30)
        (issue,) = society.issues()
        assert BODY in (issue.body or "")
        url = f"{society.github_url}/{REPO}/issues/{issue.number}"
        assert society.done() == [f"Done — issue opened: {issue.title}: {url}"]
        claims = {event.name for event in society.host.seen if isinstance(event, Claimed)}
        assert claims == {issue.author.login.removesuffix("-soul")}


UNNAMED = "The clock stops at midnight. Please open an issue for it."
OFFER = "That clock bothers me as well. Shall I open an issue for it?"
GO_AHEAD = "Yes, go ahead"


def watch_site(*souls: Soul) -> None:
    for soul in souls:
        soul.app.services.workspaces.watch(Repo(*REPO.split("/")))


async def test_one_message_that_names_no_workspace_is_enough_where_only_one_is_watched(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society:
        society.default = lambda asked: says("The clock is mine.", an_issue(repo="site")) if asked.is_owner else quiet()
        async with society.soul("marvin") as marvin, society.soul("rebecca") as rebecca:
            watch_site(marvin, rebecca)
            society.says(UNNAMED)
            await society.until(lambda: bool(society.done()), "the issue")
            (issue,) = society.issues()
            its_model = f"mind-of-{issue.author.login.removesuffix('-soul')}"
            asked = [request for request in running_town.mind.asked if request.model == its_model]
            assert len(asked) == 1, "one call from the words of the host to the issue"


async def test_a_yes_to_the_question_of_a_soul_lets_that_soul_open_the_issue(running_town: RunningTown) -> None:
    def offers(asked: Asked) -> Completion:
        if asked.is_owner:
            return says("The clock is mine.", an_issue())
        return quiet() if OFFER in asked.text else says(OFFER)

    def understands(request: ChatRequest) -> Completion:
        text = request.messages[-1].text
        return Completion(text="GO_AHEAD" if OFFER in text and GO_AHEAD in text else "DISCUSSION")

    assert elect_action_owner(FOUR, f"rebecca: {OFFER}\nhost: {GO_AHEAD}") != "rebecca"
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.default, society.otherwise = diligent, understands
        society.minds["rebecca"] = offers
        souls = [await stack.enter_async_context(society.soul(name)) for name in FOUR]
        watch_site(*souls)
        society.says("I wonder what the clock does at midnight.")
        await society.until(lambda: OFFER in society.said(by="rebecca"), "the offer")
        society.says(GO_AHEAD)
        await society.until(lambda: bool(society.done()), "the issue")
        await society.passes(30)
        assert [issue.author.login for issue in society.issues()] == ["rebecca-soul"]


def lists(asked: Asked) -> Completion:
    return says("Here is my plan:\n- look at the clock\n- write it down", *([an_issue()] if asked.is_owner else []))


def echoes(asked: Asked) -> Completion:
    return says("I agree, great point, exactly that.", *([an_issue()] if asked.is_owner else []))


def mumbles(_: Asked) -> Completion:
    return says("The issue should contain acceptance criteria and a checklist for the clock.")


def commits_in_prose(_: Asked) -> Completion:
    return says("I'll open an issue for the clock right away.")


def garbles(_: Asked) -> Completion:
    return Completion(text="<<<%% shouldSpeak == perhaps ]] {{")


def misspells(_: Asked) -> Completion:
    return call("space_decision", shouldSpeak="of course", message=17, commitments="an issue")


@pytest.mark.parametrize(
    ("mind", "told"),
    [
        (lists, "Salvaging commitments from rejected message"),
        (echoes, "Salvaging commitments from rejected message"),
        (mumbles, "Forced action mode"),
        (commits_in_prose, "Forced action mode"),
        (garbles, "Forced action mode"),
        (misspells, "Forced action mode"),
    ],
    ids=["lists", "echo", "meta", "prose", "garbage", "wrong-types"],
)
async def test_whatever_the_owners_mind_does_the_host_gets_the_issue(
    running_town: RunningTown, mind: Decide, told: str
) -> None:
    async with open_society(running_town) as society:
        society.default = mind
        society.otherwise = lambda asked: Completion(text="YES" if "The fault:" in asked.messages[-1].text else "NO")
        async with society.soul("marvin") as marvin, society.soul("rebecca") as rebecca:
            society.says(REQUEST)
            await society.until(lambda: bool(society.done()), "the issue")
            await society.passes(30)
            (issue,) = society.issues()
            owner = marvin if issue.author.login == "marvin-soul" else rebecca
            assert told in owner.lines()
            assert len(issue.body or "") > 100
            assert len(society.done()) == 1


async def test_souls_without_github_leave_the_work_to_the_one_who_has_it(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.default = eager
        social = [await stack.enter_async_context(society.soul(name, social_only=True)) for name in FOUR[:2]]
        society.says(REQUEST)
        await society.passes(40)
        assert society.issues() == []
        assert [soul.queued_commitments() for soul in social] == [[], []]
        await stack.enter_async_context(society.soul("odile"))
        society.says("Please open an issue for the gutter in github.com/acme/site, somebody.")
        await society.until(lambda: bool(society.done()), "the issue")
        assert [issue.author.login for issue in society.issues()] == ["odile-soul"]
        assert [soul.queued_commitments() for soul in social] == [[], []]


GONE = "Can you open an issue for the clock that stops at midnight in github.com/acme/gone?"


def for_gone(asked: Asked) -> Completion:
    return says("The clock at midnight is mine.", an_issue(repo="acme/gone")) if asked.is_owner else quiet()


def _leap(society: Society, seconds: float) -> None:
    assert isinstance(society.clock, Quick)
    society.clock.leap(seconds)


def _abandoned(soul: Soul) -> int:
    return sum(one.status == "abandoned" for one in soul.queued_commitments())


async def _in_haste(society: Society, soul: Soul, true: Callable[[], bool]) -> None:
    """Let it become true; while the soul waits for its next try, minutes go by at once."""

    def comes() -> bool:
        if not (came := true()) and soul.queued_commitments()[-1].status == "failed":
            _leap(society, 30)
        return came

    await society.until(comes)


async def _look_again(society: Society, soul: Soul) -> None:
    """Wait until the loops of the room and of commitments have run after this moment."""
    now, app = society.clock.now(), soul.app
    names = {app.lives.commitments.name, app.lives.space.loop.name}

    def have_run() -> bool:
        ran_at = [state.last_ran_at for state in app.scheduler.states() if state.name in names]
        return len(ran_at) == len(names) and all(at and at > now for at in ran_at)

    await society.until(have_run, "another look")


async def test_a_repository_that_does_not_exist_is_tried_nine_times_and_the_room_hears_of_no_failure(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society:
        async with society.soul("marvin", for_gone) as marvin:
            society.says(GONE)
            await society.until(lambda: bool(society.said()), "the promise")
            await _in_haste(society, marvin, lambda: _abandoned(marvin) == 1 + SPACE_MAX_REOPENS)
            said = len(society.said())
            _leap(society, 360)
            await _look_again(society, marvin)
            assert len(society.said()) == said
            assert [one.attempt_count for one in marvin.queued_commitments()] == [COMMITMENT_MAX_ATTEMPTS] * 3
            assert set(society.said()) <= {"The clock at midnight is mine.", phrase("space.creating")}
            silent = [line for line in marvin.lines() if line.startswith("Commitment abandoned silently")]
            assert len(silent) == 3
        assert society.issues() == []
