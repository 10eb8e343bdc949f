"""What a pause costs and what it keeps: peers may finish, and a request is not forgotten without a model or talk."""

from __future__ import annotations

import pytest

from modules.lives.space.perceive import Entered
from modules.lives.space.request_parser import conversation_thread_uri
from modules.runtime.llm.dialect import Usage
from tests.modules.lives.space.soul_in_room import QUESTION, REQUEST, TIN, Room, an_issue, declines, speaks
from town.model.service import BadRequest
from town.model.types import ChatRequest, Completion


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
