"""A client that says something: one message after the other, each once, whatever becomes of the room."""

from __future__ import annotations

import pytest

from adapters.space.types import Refused
from common.result import Err, Ok
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.scripted_room import ScriptedRoom, Visit, entry
from tests.patience import until


async def _echo(visit: Visit) -> None:
    await visit.welcome()
    while True:
        await visit.echo(await visit.receive("chat"))


async def test_two_messages_in_a_row_are_said_one_after_the_other() -> None:
    room = ScriptedRoom(_echo)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            first, second = await client.send_chat("one"), await client.send_chat("two", thread_id="t1")
            assert isinstance(first, Ok)
            assert isinstance(second, Ok)
            assert await client.delivered(first.data) == Ok(data=True)
            await member.clock.advance(3.0)
            assert [frame["content"] for frame in room.visits[0].said if frame["type"] == "chat"] == ["one"]
            await member.clock.advance(0.2)
            assert await client.delivered(second.data) == Ok(data=True)
            assert room.visits[0].said[-1] == {
                "type": "chat",
                "name": "ada",
                "id": client.agent_id,
                "content": "two",
                "threadId": "t1",
                "timestamp": "2026-01-05T12:00:03.100Z",
            }
            assert await client.delivered("chat-99") == Err("no such message is on its way", "not_found")


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


async def test_a_message_that_the_room_keeps_refusing_is_reported_as_not_said() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome()
        while True:
            await visit.receive("chat")
            await visit.tell(type="error", message="Rate limited")

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            sent = await client.send_chat("one")
            assert isinstance(sent, Ok)
            for times in range(1, 5):
                await room.said(times + 1)
                await until(lambda: not client._member.outgoing._flying)
                await member.clock.advance(3.2)
            result = await client.delivered(sent.data)
            assert isinstance(result, Err)
            assert "too fast" in result.error
            await until(lambda: member.told("A message was not said in the agent space"))


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
