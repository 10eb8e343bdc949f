"""A room stands on a machine of its own, and its clock may be minutes off: nobody's sense of time depends on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from modules.lives.space.perceive import Spoke
from tests.hasty_clock import HastyClock
from tests.modules.lives.space.soul_in_room import QUESTION, REQUEST, TIN, Room, declines, open_room, speaks
from tests.patience import until
from tests.running_town import RunningTown

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
