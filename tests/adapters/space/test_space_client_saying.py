"""A client that says something: one message after the other, each once, whatever becomes of the room."""

from __future__ import annotations

import pytest

from adapters.space.types import Refused
from common.result import Ok
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.scripted_room import ScriptedRoom, Visit, entry
from tests.patience import until


async def test_what_the_limiter_refused_is_said_again() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome()
        await visit.receive("chat")
        await visit.tell(type="error", message="Rate limited: wait 3 seconds")
        await visit.echo(await visit.receive("chat"))
        await visit.until_gone()

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            sent = await client.send_chat("Done — it is there")
            assert isinstance(sent, Ok)
            await until(lambda: any(isinstance(event, Refused) for event in client._member.inbox._events))
            await member.clock.advance(3.2)
            assert await client.delivered(sent.data) == Ok(data=True)
            assert [frame["content"] for frame in room.visits[0].said[1:]] == ["Done — it is there"] * 2


@pytest.mark.parametrize("recorded", [True, False], ids=["its record has them", "its record lacks them"])
async def test_words_that_were_on_their_way_when_the_room_died_are_in_its_record_once(*, recorded: bool) -> None:
    async def script(visit: Visit) -> None:
        if visit.number == 0:
            await visit.welcome()
            await visit.receive("chat")
            visit.socket.transport.abort()
            return
        await visit.welcome(entries=[entry("chat", "ada", "one")] if recorded else [])
        while True:
            await visit.echo(await visit.receive("chat"))

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            first, second = await client.send_chat("one"), await client.send_chat("two")
            assert isinstance(first, Ok)
            assert isinstance(second, Ok)
            await until(lambda: client.status == "disconnected")
            await member.clock.advance(6.1)
            assert await client.delivered(first.data) == Ok(data=True)
            await member.clock.advance(3.1)
            assert await client.delivered(second.data) == Ok(data=True)
            said = [frame["content"] for frame in room.visits[1].said[1:]]
            assert said == (["two"] if recorded else ["one", "two"])
