"""A room of whole SOULs and their host: an opinion is asked for, the talk becomes full, and the host opens it again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from adapters.space.types import Reflected
from modules.lives.space.policy import saturation_threshold
from tests.running_town import RunningTown
from tests.scenarios.room_society import Society, Soul, open_society, talkative

pytestmark = pytest.mark.slow

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
