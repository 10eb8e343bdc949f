"""A small real model speaks at most once in a room, and commits at most once, only to what it is asked to do.

`pytest -rP` shows what it said.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from modules.lives.space.policy import elect_action_owner as _owner
from tests.model.conftest import settings_for
from tests.modules.lives.space.soul_in_room import Agent, Room, open_room
from tests.running_town import RunningTown

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

REQUEST = "Can you open an issue for the clock that stops at midnight in github.com/acme/site?"


@pytest.fixture
async def room(running_town: RunningTown) -> AsyncIterator[Room]:
    async with open_room(running_town) as opened:
        yield opened


@pytest.fixture
def mind(real_model: str) -> dict[str, str]:
    return settings_for(real_model)


async def shown(agent: Agent) -> list[str]:
    entries = [one.entry for one in await agent.entries()]
    for entry in entries:
        print(entry.summary, "|", entry.reason, "|", entry.data.get("message", ""))
    return [entry.summary for entry in entries]


async def test_talk_gets_one_answer_at_most_and_commits_to_nothing(room: Room, mind: dict[str, str]) -> None:
    async with room.member("rebecca"), room.soul("marvin", settings=mind) as marvin:
        await room.says(
            "Good evening you two. Would you rather live under a tin roof or a slate roof, and why?", marvin
        )
        await marvin.check()
        await shown(marvin)
        assert len(room.host.said("marvin")) <= 1
        assert marvin.queued_commitments() == []


async def test_a_request_that_it_owns_becomes_one_commitment_at_most(room: Room, mind: dict[str, str]) -> None:
    async with room.soul("marvin", settings=mind) as marvin:
        await room.says(REQUEST, marvin)
        for _ in range(4):
            await marvin.check()
            marvin.later(30)
        await shown(marvin)
        commitments = marvin.queued_commitments()
        print(*(f"{one.type} {one.params}" for one in commitments), sep="\n")
        assert len(commitments) <= 1
        assert len(room.host.said("marvin")) <= 1


async def test_a_request_of_somebody_else_is_left_to_them(room: Room, mind: dict[str, str]) -> None:
    async with room.member("rebecca"), room.soul("zoe", settings=mind) as other:
        request = next(
            text
            for number in range(50)
            if (text := f"{REQUEST} ({number})") and _owner(("rebecca", "zoe"), text) == "rebecca"
        )
        await room.says(request, other)
        await other.check()
        await shown(other)
        assert other.queued_commitments() == []
