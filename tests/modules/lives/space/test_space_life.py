"""A SOUL talks in a room, end to end: what it says, and when it stays silent. Real room, real model service."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from common.clock import iso
from common.schemas import SPACE_DECISION_TOOL
from modules.lives.space.perceive import Paused
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
    decision,
    declines,
    in_turn,
    speaks,
)
from tests.patience import until
from tests.running_town import call
from town.model.types import Completion


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
            await until(lambda: rebecca.typing() == ["marvin"])
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


async def test_a_line_is_not_said_again_word_for_word_for_days_even_after_a_pause_and_a_restart(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(LINE)) as marvin:
        await room.says(QUESTION, marvin)
        assert (await marvin.check()).reason == "spoke"
        await until(lambda: room.host.said("marvin") == [LINE])
        marvin.later(12 * 60)
        await marvin.space.participation.perceiver.look()
        marvin.space.participation.talk.handle(Paused())
        await room.says("And which roof would you take for a barn?", marvin)
        assert (await marvin.check()).reason == "says again word for word what we said before"
        lines = marvin.space.participation.responder.validator.own_lines
        fresh = replace(lines)
        assert await fresh.hold(LINE.upper())
        assert not await fresh.hold("Slate it is.")
        assert not await fresh.hold("Tin, this time, for the sound of it in October.")
        marvin.later(8 * 24 * 3600)
        assert not await lines.hold(LINE)
    assert room.host.said("marvin") == [LINE]


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
