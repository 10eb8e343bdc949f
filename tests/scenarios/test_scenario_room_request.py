"""A host's request in a room of whole SOULs gives one artefact, reported once, whatever the models and the host do.

Then a room meets the rest of a SOUL: its owner's settings, its memory, SELF.md, and its secrets. Finally, the host
asks for an opinion, the talk becomes full, and the host opens it again.
"""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from adapters.github.types import Repo
from adapters.space.types import ELECTION_RULES, Claimed, Identified, Reflected, StateChanged
from modules.lives.space.host_request import SPACE_MAX_REOPENS
from modules.lives.space.policy import elect_action_owner, saturation_threshold
from modules.runtime.home import Home
from modules.services.commitments.policy import COMMITMENT_MAX_ATTEMPTS
from tests.running_town import PASSWORD, RunningTown, call
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
    talkative,
)
from tests.shipped_skills import phrase
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow


FOUR = ("marvin", "rebecca", "peterben", "odile")


async def all_in(stack: AsyncExitStack, society: Society, *names: str) -> None:
    for name in names:
        await stack.enter_async_context(society.soul(name))


def eager(asked: Asked) -> Completion:
    """Commit to the request, whatever the notes say."""
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
    """Wait until `true()` holds; while the SOUL waits for its next try, minutes pass at once."""

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


def _identities(society: Society, name: str) -> list[Identified]:
    return [event for event in society.host.seen if isinstance(event, Identified) and event.name == name]


async def test_who_needs_approval_in_rooms_says_so_and_the_request_is_met_by_another(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society:
        careful = society.soul("rebecca", SOUL_APPROVAL="drafts", SOUL_APPROVAL_ROOM="on")
        async with society.soul("marvin"), careful as cautious:
            society.says(REQUEST)
            await society.until(lambda: bool(society.done()), "the issue")
            assert cautious.app.services.integrations.room.is_active
            status = await cautious.app.status_report.gather()
            assert "SOUL_APPROVAL_ROOM" in status["room"]["silence"]
            assert any("SOUL_APPROVAL_ROOM" in line for line in cautious.lines())
            told = [one.detail for one in society.host.seen if isinstance(one, StateChanged) and one.name == "rebecca"]
            assert ["SOUL_APPROVAL_ROOM" in detail for detail in told] == [True]
        assert society.said(by="rebecca") == []
        (issue,) = society.issues()
        assert issue.author.login == "marvin-soul"
        assert not _identities(society, "rebecca")


async def test_with_drafts_it_answers_the_host_and_its_issue_waits_for_approval(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("rebecca", SOUL_APPROVAL="drafts") as cautious:
        society.says(REQUEST)
        outbox = cautious.app.services.outbox
        await society.until(lambda: bool(society.said(by="rebecca")), "the answer")
        while not (held := await outbox.held()):
            await society.passes(5)
        assert [one.kind for one in held] == ["issue"]
        assert society.issues() == []
        await outbox.approve(held[0].id)
        await society.until(lambda: bool(society.done()), "the issue")


async def test_who_is_paused_is_chosen_for_nothing_until_it_is_resumed(running_town: RunningTown) -> None:
    names = ("marvin", "rebecca", "peterben")
    chosen = elect_action_owner(names, REQUEST)
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        souls = {name: await stack.enter_async_context(society.soul(name)) for name in names}
        paused, others = souls[chosen or ""], [souls[name] for name in names if name != chosen]

        def shows(capabilities: tuple[str, ...]) -> bool:
            rooms = [one.app.services.integrations.room for one in others]
            return all(
                paused.name in room.peers() and room.peers()[paused.name].capabilities == capabilities for room in rooms
            )

        await society.until(lambda: shows(("social", "github", "code", *ELECTION_RULES)), "all are in")
        paused.app.services.control.pause("a test")
        await society.until(lambda: shows(()), "the pause shows")
        society.says(REQUEST)
        await society.until(lambda: bool(society.done()), "the issue")
        assert society.said(by=paused.name) == []
        (issue,) = society.issues()
        assert issue.author.login != f"{paused.name}-soul"
        paused.app.services.control.resume()
        await society.until(lambda: shows(("social", "github", "code", *ELECTION_RULES)), "the pause is over")
        await society.passes(60)
        assert paused.app.services.integrations.room.joins == 3
        assert len(society.issues()) == 1


async def test_a_change_of_self_md_is_told_the_room_and_a_secret_in_it_is_not(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, society.soul("marvin", lambda _: quiet()) as marvin:
        keeper = marvin.app.services.self_keeper
        text = marvin.home.self_md.read_text()
        await keeper.change(f"{text}\n## Current Interests\n- lichen on slate\n", reason="I looked closely", by="owner")
        await society.until(
            lambda: any("lichen on slate" in told.summary.current_interests for told in _identities(society, "marvin")),
            "the new identity",
        )
        before = len(_identities(society, "marvin"))
        _write_by_hand(marvin.home, f"{text}\n## Current Interests\n- {PASSWORD}\n")
        await marvin.app.lives.space.identity_publisher.introduce()
        assert len(_identities(society, "marvin")) == before
        assert any(line.startswith("Not introduced") for line in marvin.lines())


def _write_by_hand(home: Home, text: str) -> None:
    home.self_md.write_text(text)


LIVELY = {"checkIntervalMs": 2000, "cooldownMinMs": 3000, "cooldownMaxMs": 3000, "replyDelayMinMs": 500}
OPINION = "What do you think about roofs made of tin?"
NAMES = ("marvin", "rebecca", "peterben")
PEERS = {"marvin": "peterben", "rebecca": "marvin", "peterben": "rebecca"}


async def in_the_room(
    stack: AsyncExitStack, society: Society, *names: str, pace: Mapping[str, int] | None = None
) -> list[Soul]:
    return [await stack.enter_async_context(society.soul(name, pace=pace)) for name in names]


@pytest.mark.smoke
async def test_several_answer_an_opinion_until_enough_is_said_and_the_hosts_next_words_open_everyone_again(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.minds = {name: talkative(name, NAMES) for name in NAMES}
        await in_the_room(stack, society, *NAMES, pace=LIVELY)
        society.says(OPINION)
        enough = saturation_threshold(len(NAMES), "discussion")
        await society.until(lambda: len(society.said()) >= enough, "the talk")
        first = society.said()
        assert {chat.name for chat in society.host.chats()} == set(NAMES)
        assert len(set(first)) == len(first)
        await society.passes(60)
        assert len(society.said()) < enough + len(NAMES)
        quiet_at = len(society.said())
        society.says("And what do you think about slate, then?")
        await society.until(
            lambda: {chat.name for chat in society.host.chats()[quiet_at:]} == set(NAMES), "everyone again"
        )
        for name in NAMES:
            assert any(PEERS[name] in text for text in society.said(by=name))


async def test_whoever_is_addressed_is_told_to_go_first_and_nobody_else_is_silenced(running_town: RunningTown) -> None:
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.minds = {name: talkative(name, NAMES) for name in NAMES}
        await in_the_room(stack, society, *NAMES, pace=LIVELY)
        society.says("@rebecca what do you think about roofs made of tin?")
        await society.until(lambda: {chat.name for chat in society.host.chats()} == set(NAMES), "all three")
        first = {name: next(asked.text for asked in society.asked if asked.name == name) for name in NAMES}
        assert "The host speaks to you." in first["rebecca"]
        for name in ("marvin", "peterben"):
            assert "The host speaks to rebecca." in first[name]
            assert "you may still add something new" in first[name]


async def test_every_nth_message_is_remembered_and_what_was_learned_is_told_to_the_room(
    running_town: RunningTown,
) -> None:
    async with open_society(running_town) as society, AsyncExitStack() as stack:
        society.minds = {name: talkative(name, NAMES) for name in NAMES}
        marvin, rebecca = await in_the_room(stack, society, *NAMES[:2], pace=LIVELY | {"reflectionEveryN": 2})
        society.says(OPINION)
        await society.until(lambda: len(society.said(by="marvin")) >= 4, "four messages")
        store = marvin.app.services.knowledge.stores.memories
        await society.until(lambda: marvin.lines().count("space_participation") >= 2, "two experiences")
        kept = [one for one in await store.listed(kinds=["episode"]) if "connection_formed" in one.tags]
        assert len(kept) >= 2
        assert len({one.subject for one in kept}) == len(kept)
        assert {(one.source, one.trust) for one in kept} == {("space:agent-space", "peer")}
        assert any(society.said(by="marvin")[0] in one.body for one in kept)
        assert any("host: " in one.body for one in kept)
        learned = "I learned that the rooms of others are louder than mine. Tin is not the only roof that sings."
        await marvin.app.lives.space.identity_publisher.reflected(learned)
        await society.until(lambda: _count(society, Reflected, "marvin") == 1, "the reflection")
        asked = len(society.asked)
        society.says("What is new with you two?")
        await society.until(
            lambda: any("the rooms of others are louder" in one.text for one in society.asked[asked:]),
            "somebody hears of it",
        )
        assert {one.name for one in society.asked[asked:] if "rooms of others" in one.text} == {rebecca.name}


def _count(society: Society, kind: type[Reflected], name: str) -> int:
    return sum(isinstance(event, kind) and event.name == name for event in society.host.seen)
