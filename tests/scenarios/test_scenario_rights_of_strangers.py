"""Anybody may ask about their own data in a direct message, also whom the SOUL does not follow; and nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from modules.services.rights.requests import FORGET_AGAIN_AFTER, ForgetRequests
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.phone import Phone, look
from tests.scenarios.test_scenario_rights import answering, asked_of, forget_now, home_of
from tests.scenarios.test_scenario_rights_by_message import talking
from tests.soul.commands.test_forget_command import places_that_hold

ASKED = "ok, now wipe whatever you have got of me"
TALK = "Which moss would you begin with?"
SAID = "Within the hour I know nothing of you any more."
KINDS = {"wipe whatever": "forget", "got on me": "know"}


async def look_twice(soul: RunningSoul) -> None:
    await look(soul)
    await look(soul)


async def test_a_stranger_who_asks_in_a_message_is_answered_once_and_nothing_else_they_write_is_read(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    running_town.mind.answer = answering(KINDS, SAID)
    async with awake(home) as soul:
        await look(soul)
        quillon.says(TALK)
        await look_twice(soul)
        assert places_that_hold(home.memory, quillon.did, "quillon", TALK) == []
        quillon.says(ASKED)
        await look_twice(soul)
        assert quillon.answers == [SAID]
        assert quillon.convo.members[quillon.soul].status == "accepted"
        for text in (TALK, "And where would it live?", "thank you, forget how loud slate is"):
            quillon.says(text)
            await look_twice(soul)
        assert quillon.answers == [SAID]
        assert soul.app.services.relationships.get(running_town.account("quillon")) is None
    assert {one.facts.purpose for one in running_town.mind.asked} == {"rights-request", "rights-answer"}
    assert len(asked_of(running_town, "rights-request")) == 2
    assert places_that_hold(home.root, TALK, "where would it live") == []


@pytest.mark.slow
async def test_a_stranger_who_is_forgotten_stays_one_whose_requests_alone_are_read_and_leaves_no_byte(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town)
    needles = (quillon.did, "quillon", "wipe whatever", "got on me")
    running_town.mind.answer = answering(KINDS, SAID)
    async with awake(home) as soul:
        await look(soul)
        quillon.says(ASKED)
        await look_twice(soul)
    assert places_that_hold(home.root, *needles)
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, *needles) == []
    async with awake(home) as soul:
        quillon.says(TALK)
        await look_twice(soul)
        assert places_that_hold(home.memory, *needles, TALK) == []
        quillon.says(ASKED)
        await look_twice(soul)
        assert len(quillon.answers) == 2
        (request,) = ForgetRequests(home.memory).all()
        assert request.not_before - soul.app.services.clock.now() > FORGET_AGAIN_AFTER - timedelta(hours=1)
    await asyncio.to_thread(forget_now, home)
    assert places_that_hold(home.root, *needles) == []


async def test_a_stranger_who_asked_is_answered_like_anybody_once_the_soul_follows_them(
    running_town: RunningTown,
) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town, SOUL_SPEED="1")
    running_town.mind.answer = talking(KINDS, SAID)
    async with awake(home) as soul:
        await look(soul)
        quillon.says("what have you got on me?")
        await look(soul)
        soul.passes(60)
        await look_twice(soul)
        assert len(quillon.answers) == 1
        quillon.is_followed()
        soul.passes(700)
        quillon.says(TALK)
        await look(soul)
        soul.passes(60)
        await look_twice(soul)
        assert len(quillon.answers) == 2
        assert soul.app.services.relationships.get(running_town.account("quillon")) is not None


async def test_where_the_owner_lets_nobody_else_write_requests_are_left_unread_too(running_town: RunningTown) -> None:
    quillon, home = Phone(running_town, "quillon", "rowan"), home_of(running_town, SOUL_MESSAGES_FROM="owner")
    running_town.mind.answer = answering(KINDS, SAID)
    async with awake(home) as soul:
        await look(soul)
        quillon.says(ASKED)
        await look_twice(soul)
    assert quillon.answers == []
    assert running_town.mind.asked == []


async def test_a_flood_of_one_stranger_is_bounded_and_another_is_answered_beside_it(running_town: RunningTown) -> None:
    mallory, quillon = (Phone(running_town, name, "rowan") for name in ("mallory", "quillon"))
    home = home_of(running_town)
    running_town.mind.answer = answering(KINDS, SAID)
    async with awake(home) as soul:
        await look(soul)
        mallory.says("what have you got on me?")
        await look_twice(soul)
        for number in range(150):
            mallory.says(f"what have you got on me, {number}?")
        quillon.says("ask me nothing", ASKED)
        await look_twice(soul)
        assert quillon.answers == [SAID]
        assert len(mallory.answers) == 2
        state = soul.app.services.database
        count = "SELECT count(*) FROM direct_messages WHERE author_did = ?"
        kept = await state.run(lambda connection: connection.execute(count, (mallory.did,)).fetchone()[0])
        assert kept == 1 + 5
