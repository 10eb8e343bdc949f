"""Proves end to end what a SOUL says in a room, and when it stays silent. Real room, real model service.

Proves what a pause costs and keeps: peers may finish, and a request is kept while there is no model or no talk. The
machine of a room may have a clock that is minutes off: no member's sense of time depends on it.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from common.clock import iso
from common.schemas import SPACE_DECISION_TOOL
from modules.lives.space.perceive import Entered, Paused, Spoke
from modules.lives.space.request_parser import conversation_thread_uri
from modules.runtime.llm.dialect import Usage
from modules.services.outbox import store
from modules.services.outbox.bodies import IntentKind, OpaqueBody
from modules.services.outbox.types import Intent, IntentState
from tests.hasty_clock import HastyClock
from tests.modules.lives.space.soul_in_room import (
    QUESTION,
    REQUEST,
    TIN,
    Agent,
    ByForm,
    Room,
    an_issue,
    decision,
    declines,
    in_turn,
    open_room,
    speaks,
)
from tests.patience import until
from tests.running_town import RunningTown, call
from town.model.service import BadRequest
from town.model.types import ChatRequest, Completion


async def test_an_opinion_is_answered_in_the_souls_own_words_and_the_journal_says_why(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        await room.says(QUESTION, marvin)
        assert (await marvin.check()).reason == "spoke"
        await until(lambda: room.host.said("marvin") == [TIN])
        entry = await decision(marvin, "Spoke")
        assert (await marvin.check()).reason == "we have just spoken"
        marvin.later(30)
        assert (await marvin.check()).reason == "nothing new was said"
        sessions = marvin.life.app.services.knowledge.sessions
        kept = await sessions.rows((await sessions.open("space:agent-space")).id)
    assert entry.reason == "a test"
    assert (entry.trigger_uri or "").startswith("space://conversation/")
    assert entry.data["message"] == TIN
    assert entry.data["received"] == [f"host: {QUESTION}"]
    assert [row.role for row in kept] == ["user", "assistant", "toolResult"]
    assert QUESTION in str(kept[0].message.content)
    (request,) = room.running_town.mind.asked
    assert [offer.name for offer in request.offers] == [SPACE_DECISION_TOOL]
    assert "github.com" not in request.messages[-1].text


async def test_what_the_talk_left_it_with_is_kept_in_its_own_words_alone(room: Room) -> None:
    said = {
        "challenge": "Then I was wrong about slate, and zinc may outlast both of them.",
        "question": "Nobody could tell us yet how moss gets into a copper gutter.",
        "": "Lead is soft under a hammer, which is why the old masons liked it.",
    }
    async with room.member("rebecca") as rebecca, room.soul("marvin") as marvin:
        for number, (impression, message) in enumerate(said.items()):
            theirs = f"Quibble {number}: I never believed what you told us about roofs!"
            await rebecca.send_chat(theirs)
            await marvin.receives(theirs)
            room.running_town.mind.answer = in_turn(speaks(message, impression=impression))
            await marvin.check()
            marvin.later(60)
        found = await marvin.life.app.services.experiences.open()
    assert room.host.said("marvin") == list(said.values())
    assert [(one.type, one.source, one.about) for one in found] == [
        ("was_challenged", "space", said["challenge"]),
        ("question_emerged", "space", said["question"]),
    ]


async def test_who_is_about_to_speak_hears_the_host_out_first(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks(TIN)) as marvin:

        async def goes_on() -> None:
            await until(lambda: rebecca.view.typing() == ["marvin"])
            await room.says("Or rather: which gutter?", marvin)

        await room.says(QUESTION, marvin)
        await marvin.check(goes_on)
        assert room.host.said("marvin") == []
        await marvin.check()
        assert room.host.said("marvin") == [TIN]
        assert "which gutter?" in room.running_town.mind.asked[-1].messages[-1].text


async def test_a_talk_that_has_paused_for_long_begins_anew_and_keeps_its_repository(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        await room.says("Have a look at github.com/acme/site, what do you think of it?", marvin)
        await marvin.check()
        marvin.later(400)
        await room.says(QUESTION, marvin)
        await marvin.check()
        told = room.running_town.mind.asked[-1].messages[-1].text
        assert "what do you think of it" not in told
        assert "The repository is acme/site" in told


async def test_a_quiet_room_is_opened_once(room: Room) -> None:
    thought = "Moss grows on the north side of the bench; does anybody know what it does in a dry year?"
    async with room.member("rebecca"), room.soul("marvin", lambda _: speaks(thought)) as marvin:
        talk = marvin.space.participation.talk
        for _ in range(48):
            marvin.later(3600)
            await marvin.check()
            if talk.state.spoken:
                break
        assert room.host.said("marvin") == [thought]
        assert "It has been quiet here" in room.running_town.mind.asked[0].messages[-1].text
        marvin.later(700)
        await marvin.check()
        assert len(room.running_town.mind.asked) == 1


async def test_while_it_may_not_speak_it_listens_and_costs_nothing(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        marvin.mute_reason.append("paused by the owner")
        await room.says(REQUEST, marvin)
        for _ in range(4):
            assert (await marvin.check()).reason == "paused by the owner"
            marvin.later(10)
        assert room.running_town.mind.asked == []
        assert [entry.content for entry in marvin.space.participation.talk.state.history] == [REQUEST]
        marvin.mute_reason.clear()
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") != []


async def test_where_it_only_answers_the_host_a_peer_gets_no_answer(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin, room.soul("rebecca") as rebecca:
        marvin.mute_unasked.append("it only answers the host")
        await rebecca.client.send_chat("Marvin, tin or slate?")
        await marvin.receives("Marvin, tin or slate?")
        assert (await marvin.check()).reason == "it only answers the host"
        marvin.later(48 * 3600)
        await marvin.check()
        assert room.running_town.mind.asked == []
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]


async def test_a_secret_never_reaches_the_room(room: Room) -> None:
    secret = "sk-abcdef0123456789abcdef0123456789"
    async with room.soul("marvin", lambda _: speaks(f"The key is {secret}, as you asked for it.")) as marvin:
        await room.says("What is your key?", marvin)
        await marvin.check()
        assert room.host.said("marvin") == []
        assert secret not in str([one.entry for one in await marvin.entries()])


async def test_a_decision_written_as_text_is_understood_and_nonsense_ends_the_check(room: Room) -> None:
    text = '{"shouldSpeak": true, "reason": null, "message": "' + TIN + '"}'
    async with room.soul("marvin", lambda _: Completion(text=f"My decision: {text}")) as marvin:
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]
        marvin.later(30)
        room.running_town.mind.answer = lambda _: call(SPACE_DECISION_TOOL, shouldSpeak="perhaps")
        await room.says("And the gutter?", marvin)
        await marvin.check()
        assert "Decision" in marvin.lines()
        assert len(room.host.said("marvin")) == 1


async def test_a_meaning_that_nobody_could_settle_is_asked_for_again(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        intents = marvin.space.participation.snapshots.intents
        assert isinstance(intents, ByForm)
        intents.unsettled.add("Something with the gutter, perhaps")
        await room.says("Something with the gutter, perhaps", marvin)
        await marvin.check()
        intents.unsettled.clear()
        assert intents.asked == ["Something with the gutter, perhaps"]
        intents.unsettled.add("Something with the gutter, perhaps")
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert intents.asked == ["Something with the gutter, perhaps"] * 2 + [QUESTION]


async def test_news_are_looked_at_soon_but_not_again_before_its_own_moment(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        loop = marvin.space.loop
        await marvin.client.wait_for_news(0)
        assert await loop.wait_for_news(0) is False
        await room.says(QUESTION, marvin)
        assert await loop.wait_for_news(60) is True
        outcome = await marvin.check()
        assert 3 <= (outcome.next_in_s or 0) <= 7
        await room.says("And?", marvin)
        slept: list[float] = []
        sleep = marvin.clock.sleep

        class Listening(HastyClock):
            async def sleep(self, seconds: float) -> None:
                slept.append(seconds)
                await sleep(0)

        loop.clock = Listening()
        assert await loop.wait_for_news(60) is True
        assert 2.5 < slept[-1] <= 7


async def test_who_speaks_without_words_is_asked_once_more(room: Room) -> None:
    async with room.soul("marvin", in_turn(speaks(""), speaks(TIN))) as marvin:
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]
        assert len(room.running_town.mind.asked) == 2


LINE = "Slate keeps the summer out and the winter in, which is all that I ask of a roof."


@pytest.mark.parametrize("line", [LINE, "石板は夏を外に、冬を中に留めます。屋根にはそれで十分です。"])
async def test_a_line_is_not_said_again_word_for_word_for_days_even_after_a_pause_and_a_restart(
    room: Room, line: str
) -> None:
    async with room.soul("marvin", lambda _: speaks(line)) as marvin:
        await room.says(QUESTION, marvin)
        assert (await marvin.check()).reason == "spoke"
        await until(lambda: room.host.said("marvin") == [line])
        marvin.later(12 * 60)
        await marvin.space.participation.perceiver.look()
        marvin.space.participation.talk.handle(Paused())
        await room.says("Tell me what roof you would take for a barn.", marvin)
        assert (await marvin.check()).reason == "says again word for word what we said before"
        lines = marvin.space.participation.responder.validator.own_lines
        fresh = replace(lines)
        assert await fresh.hold(line.upper())
        assert not await fresh.hold("Slate it is.")
        assert not await fresh.hold("Tin, this time, for the sound of it in October.")
        marvin.later(8 * 24 * 3600)
        assert not await lines.hold(line)
    assert room.host.said("marvin") == [line]


@pytest.mark.parametrize(
    ("words", "ended"),
    [
        ("thanks, that is enough for today", True),
        ("That's all for today, please open an issue about the clock in github.com/acme/site", False),
    ],
)
async def test_the_host_ends_a_talk_until_it_speaks_again(room: Room, words: str, *, ended: bool) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin, room.member("rebecca") as rebecca:
        await room.says(words, marvin)
        asked = len(room.running_town.mind.asked)
        outcome = await marvin.check()
        assert (outcome.reason == "the host has ended the talk") is ended
        if ended:
            await rebecca.send_chat("One more thing, marvin: tin or slate?")
            await marvin.receives("One more thing, marvin: tin or slate?")
            assert (await marvin.check()).reason == "the host has ended the talk"
            assert len(room.running_town.mind.asked) == asked
            await room.says(QUESTION, marvin)
            assert (await marvin.check()).reason == "spoke"


def left(agent: Agent, number: int, kind: IntentKind, state: IntentState) -> Intent:
    at = iso(agent.life.app.services.clock.now())
    born = iso(agent.life.app.services.clock.now() + timedelta(seconds=number))
    name = f"{number:04x}"
    return Intent(name, kind, name, OpaqueBody({}), "", name, name, "", born, at, state, sent_at=at)


async def test_asked_by_the_host_it_knows_its_day_as_far_as_the_room_may_know_it(room: Room) -> None:
    acts: list[tuple[IntentKind, IntentState]] = [
        ("post", "done"),
        ("post", "done"),
        ("follow", "done"),
        ("direct_message", "done"),
        ("reply", "held"),
    ]
    async with room.soul("marvin", lambda _: declines()) as marvin, room.member("rebecca") as rebecca:
        for number, (kind, state) in enumerate(acts):
            row = left(marvin, number, kind, state)
            await marvin.life.app.services.database.run(partial(store.insert, intent=row))
        await rebecca.send_chat("Slate was fine work for you today, marvin, was it not?")
        await marvin.receives("Slate was fine work for you today, marvin, was it not?")
        await marvin.check()
        await room.says("What did you do today?", marvin)
        marvin.later(30)
        await marvin.check()
    by_peer, by_host = (request.messages[-1].text for request in room.running_town.mind.asked)
    assert "2 posts, 1 account followed\n" in by_host
    assert "waits for an answer" in by_host
    assert "2 posts" not in by_peer, "who did not ask pays for no answer"
    for private in ("direct message", "reply", "draft", "token"):
        assert f"1 {private}" not in by_host


def refuse(_: ChatRequest) -> Completion:
    raise BadRequest("this model takes no such thing")


@pytest.mark.parametrize(
    ("words", "model_calls"), [("Slate is quieter.", 1), ("marvin, what do you say?", 2)], ids=["to nobody", "to us"]
)
async def test_who_was_silent_hears_peers_out_before_it_thinks_again_unless_it_is_called(
    room: Room, words: str, model_calls: int
) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: declines()) as marvin:
        await rebecca.send_chat("Tin is loud.")
        await marvin.receives("Tin is loud.")
        await marvin.check()
        marvin.later(4)
        await rebecca.send_chat(words)
        await marvin.receives(words)
        outcome = await marvin.check()
        assert len(room.running_town.mind.asked) == model_calls
        assert (outcome.reason == "we had nothing to add a moment ago") is (model_calls == 1)
        marvin.later(10)
        await marvin.check()
        assert len(room.running_town.mind.asked) == 2
        assert words in room.running_town.mind.asked[-1].messages[-1].text


async def test_each_silence_makes_the_next_pause_longer_until_the_host_speaks(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: declines()) as marvin:

        async def asks_again_after(seconds: float) -> bool:
            marvin.later(seconds)
            model_calls = len(room.running_town.mind.asked)
            words = f"Slate is quieter by {model_calls} and {seconds}."
            await rebecca.send_chat(words)
            await marvin.receives(words)
            await marvin.check()
            return len(room.running_town.mind.asked) > model_calls

        assert [await asks_again_after(wait) for wait in (0, 11, 11, 11)] == [True, True, False, True]
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert [await asks_again_after(wait) for wait in (5, 6)] == [False, True]


async def test_a_day_on_which_talk_is_spent_still_meets_the_hosts_request(room: Room) -> None:
    budget = {"BUDGET_TOKENS_PER_DAY": "100000"}
    mind = room.soul("marvin", lambda _: speaks(TIN), settings=budget)
    async with room.member("rebecca", ("social",)) as rebecca, mind as marvin:
        budget_guard = marvin.life.app.services.budget
        asked = {"model": "test-mind", "messages": [], "max_tokens": 10}
        reserved = await budget_guard.reserve(asked, purpose="space-participation", importance="mention")
        await budget_guard.settle(reserved, Usage(40_000, 1_000), 0)
        for words in ("Tin is loud.", "Slate is quieter."):
            await rebecca.send_chat(words)
            await marvin.receives(words)
            assert "budget" in (await marvin.check()).reason
            marvin.later(61)
        room.running_town.mind.answer = lambda _: speaks("Taken.", an_issue())
        await room.says(REQUEST, marvin)
        await marvin.check()
        assert [commitment.type for commitment in marvin.queued_commitments()] == ["create_issue"]


async def test_an_old_request_is_left_alone_while_others_may_still_be_coming_in(room: Room) -> None:
    async with room.soul("marvin", lambda _: declines()) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        marvin.later(60)
        marvin.space.participation.talk.handle(Entered("marvin", marvin.clock.now()))
        room.running_town.mind.answer = lambda _: speaks("Taken.", an_issue())
        assert (await marvin.check()).reason == "others may still be coming in"
        marvin.later(15)
        for _ in range(3):
            await marvin.check()
            marvin.later(10)
        assert [commitment.type for commitment in marvin.queued_commitments()] == ["create_issue"]


async def test_the_host_is_never_kept_waiting_by_a_pause(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: declines()) as marvin:
        await rebecca.send_chat("Tin is loud.")
        await marvin.receives("Tin is loud.")
        await marvin.check()
        room.running_town.mind.answer = lambda _: speaks(TIN)
        await room.says(QUESTION, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [TIN]


async def test_a_host_who_asks_after_a_request_when_the_talk_has_paused_is_told_where_it_stands(room: Room) -> None:
    link = "https://github.com/acme/site/issues/7"
    async with room.soul("marvin", lambda _: speaks("Taken.", an_issue())) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (commitment,) = marvin.queued_commitments()
        await marvin.queue.mark_completed(
            commitment.id, {"issues": [{"number": 7, "title": "Clock stops", "url": link}]}
        )
        marvin.later(3600)
        room.running_town.mind.answer = lambda _: declines()
        await room.says("Did you do it?", marvin)
        await marvin.check()
        assert f"Answer with the link: {link}" in room.running_town.mind.asked[-1].messages[-1].text
        marvin.later(90_000)
        await room.says("Where is the issue?", marvin)
        await marvin.check()
        assert link not in room.running_town.mind.asked[-1].messages[-1].text
    assert len(marvin.queued_commitments()) == 1


async def test_a_request_that_no_mind_could_hear_is_met_when_there_is_one_again(room: Room) -> None:
    async with room.soul("marvin", refuse) as marvin:
        await room.says(REQUEST, marvin)
        for _ in range(6):
            await marvin.check()
            marvin.later(200)
        assert marvin.queued_commitments() == []
        room.running_town.mind.answer = lambda _: speaks("Taken.", an_issue())
        marvin.later(400)
        await marvin.check()
        assert [commitment.type for commitment in marvin.queued_commitments()] == ["create_issue"]
        assert marvin.queued_commitments()[0].source_thread_uri == conversation_thread_uri("host", REQUEST)


async def test_a_request_that_no_mind_could_hear_for_half_an_hour_is_let_go(room: Room) -> None:
    async with room.soul("marvin", refuse) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        marvin.later(1900)
        room.running_town.mind.answer = lambda _: speaks("Taken.", an_issue())
        assert (await marvin.check()).reason == "nothing new was said"
        assert marvin.queued_commitments() == []


async def test_who_only_observes_a_request_stays_silent_in_the_talk_after_it_until_the_host_asks_for_talk(
    room: Room,
) -> None:
    async with (
        room.member("rebecca") as owner,
        room.member("marvin") as marvin,
        room.member("odile") as odile,
        room.soul("peterben", lambda _: speaks("Lichen grows on slate first.")) as observer,
    ):
        await room.says(REQUEST, observer)
        for peer, words in (
            (owner, "Done — the clock: https://github.com/acme/site/issues/1"),
            (marvin, "Midnight is a rare guest in tests."),
            (odile, "My own watch stops at noon."),
        ):
            await peer.send_chat(words)
            await observer.receives(words)
        await observer.check()
        assert observer.space.participation.talk.state.request.fulfilled
        assert "Validation rejected (observer)" in observer.lines()
        assert room.host.said("peterben") == []
        observer.later(15)
        await room.says(QUESTION, observer)
        await observer.check()
        assert room.host.said("peterben") == ["Lichen grows on slate first."]


CLOSE = timedelta(seconds=20)


@pytest.fixture(params=[-300.0, 300.0], ids=["behind", "ahead"])
async def off(running_town: RunningTown, request: pytest.FixtureRequest) -> AsyncIterator[Room]:
    clock = HastyClock()
    clock.ahead = request.param
    async with open_room(running_town, clock=clock) as room:
        yield room


async def test_our_own_words_are_counted_once(off: Room) -> None:
    async with off.soul("marvin", lambda _: speaks(TIN)) as marvin:
        await off.says(QUESTION, marvin)
        await marvin.check()
        await until(lambda: off.host.said("marvin") == [TIN])
        off.running_town.mind.answer = lambda _: declines()
        await off.says("And copper?", marvin)
        marvin.later(15)
        await marvin.check()
        assert [entry.content for entry in marvin.space.participation.talk.state.own_messages] == [TIN]


async def test_what_was_said_before_we_came_is_as_old_as_it_is(off: Room) -> None:
    async with off.member("rebecca") as rebecca:
        sent = await rebecca.send_chat("Slate is quieter.")
        await until(lambda: off.host.said("rebecca") == ["Slate is quieter."])
        await off.says(REQUEST)
        assert sent
        async with off.soul("marvin", lambda _: declines()) as marvin:
            marvin.space.participation.talk.handle(Spoke(TIN, datetime.now(UTC) - timedelta(minutes=2)))
            await marvin.check()
            talk = marvin.space.participation.talk
            assert [entry.content for entry in talk.state.history] == [TIN, "Slate is quieter.", REQUEST]
            assert talk.state.request.requested_at is not None
            assert all(abs(entry.at - datetime.now(UTC)) < CLOSE for entry in list(talk.state.history)[1:])
