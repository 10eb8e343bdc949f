"""A client that loses its room, in every way in which rooms are lost, and comes back: once, and never deaf."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.space.client import SpaceClient
from common.clock import FakeClock
from common.errors import StorageError
from common.result import ApiResult, Err, Ok
from tests.adapters.space.member_house import Member, at, living
from tests.adapters.space.scripted_room import AT, ScriptedRoom, Visit, until


async def _stay(visit: Visit) -> None:
    await visit.welcome()
    await visit.until_gone()


async def _die(visit: Visit) -> None:
    await visit.welcome()
    visit.socket.transport.abort()


async def _settled(member: Member) -> None:
    """The client has done what the last moment asked of it, and waits for the next."""
    await until(lambda: member.client.status == "disconnected" and _sleeps(member))


def _sleeps(member: Member) -> bool:
    return any(not sleeper.done() for *_, sleeper in member.clock._sleepers)


async def test_comes_back_five_seconds_after_the_room_died_with_one_connection_only() -> None:
    room = ScriptedRoom(_die, _stay)
    async with room.open():
        member = Member(at(room.url))
        async with living(member) as client:
            await until(lambda: member.told("Disconnected from agent space"))
            await _settled(member)
            await member.clock.advance(3.9)
            assert len(room.visits) == 1
            await member.clock.advance(2.2)
            await until(lambda: client.joins == 2)
            await member.clock.advance(1_000)
            assert (len(room.visits), room.most_live) == (2, 1)


async def test_keeps_trying_a_room_that_is_not_up_yet_and_asks_discovery_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    room = ScriptedRoom(_stay)
    asked = 0

    async def find() -> ApiResult[str]:
        nonlocal asked
        asked += 1
        return Ok(f"ws://127.0.0.1:{port}")

    member = Member(find)
    async with living(member) as client:
        cycle = client._member._cycle
        for failures, times_asked in ((4, 1), (5, 2), (6, 3)):
            while cycle._failures < failures:
                await member.clock.advance(0.5)
                await asyncio.sleep(0.0005)
            assert asked == times_asked
        await _settled(member)
        async with room.open(port):
            await member.clock.advance(72.1)
            await until(lambda: client.is_active)
            await client.close()


async def test_another_program_of_our_name_is_left_in_peace_and_the_owner_told_once() -> None:
    async def replace(visit: Visit) -> None:
        await visit.welcome()
        await visit.socket.close(4002, "Replaced by new connection")

    room = ScriptedRoom(replace)
    async with room.open():
        member = Member(at(room.url))
        async with living(member):
            for visits in (1, 2, 3):
                await room.visited(visits)
                await _settled(member)
                await member.clock.advance(299)
                assert len(room.visits) == visits
                while len(room.visits) == visits:
                    await member.clock.advance(1)
                    await asyncio.sleep(0.001)
            warnings = [message for kind, message, _ in member.notices if kind == "warn"]
            assert warnings == ["The agent space will not have us; trying again in 5 minutes"]
            assert "AGENT_NAME" in member.told(warnings[0])[0]


async def test_two_programs_of_one_name_do_not_throw_each_other_out_for_ever() -> None:
    holders: list[Visit] = []

    async def room_of_one(visit: Visit) -> None:
        for holder in holders:
            await holder.socket.close(4002, "Replaced by new connection")
        holders[:] = [visit]
        await visit.welcome()
        await visit.until_gone()

    room = ScriptedRoom(room_of_one)
    async with room.open():
        one = Member(at(room.url))
        other = Member(at(room.url), clock=one.clock)
        async with living(one):
            await until(lambda: one.client.is_active)
            async with living(other):
                await until(lambda: other.client.is_active and one.client.status == "disconnected")
                for _ in range(30):
                    await one.clock.advance(10)
                    await asyncio.sleep(0.002)
                assert len(room.visits) <= 3


async def test_an_invalid_join_is_told_with_the_rooms_own_words() -> None:
    async def refuse(visit: Visit) -> None:
        await visit.hear("join")
        await visit.tell(type="error", message="Invalid join: the name host is taken")
        await visit.socket.close(4003, "Invalid join message")

    room = ScriptedRoom(refuse)
    async with room.open():
        member = Member(at(room.url))
        async with living(member):
            await until(lambda: member.told("The agent space will not have us; trying again in 5 minutes"))
        told = member.told("The agent space will not have us; trying again in 5 minutes")
        assert "the name host is taken" in told[0]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_wrong_token_is_told_and_not_tried_again_and_again(status: int) -> None:
    asked = 0

    async def refuse(connection: ServerConnection, request: Request) -> Response:
        nonlocal asked
        asked += 1
        return connection.respond(status, "no")

    async def nobody(connection: ServerConnection) -> None:
        raise AssertionError("nobody gets in")

    async with serve(nobody, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        member = Member(at(f"ws://127.0.0.1:{port}/?token=wrong-one"))
        async with living(member):
            await until(lambda: member.told("The agent space will not have us; trying again in 5 minutes"))
            await _settled(member)
            await member.clock.advance(290)
            assert asked == 1
    assert "wrong-one" not in repr(member.notices)


async def test_stays_while_the_room_closes_and_says_what_is_left() -> None:
    async def close_in_order(visit: Visit) -> None:
        await visit.welcome()
        await visit.tell(type="shutdown", reason="Server shutting down", timestamp=AT)
        await visit.echo(await visit.hear("chat"))
        await visit.hear("action_result")
        await visit.socket.close(1001, "Server shutting down")

    room = ScriptedRoom(close_in_order, _stay)
    async with room.open():
        member = Member(at(room.url))
        async with living(member) as client:
            await until(lambda: client.status == "draining")
            assert client.is_active
            sent = await client.send_chat("Done — it is there")
            assert isinstance(sent, Ok)
            assert await client.delivered(sent.data) == Ok(data=True)
            assert await client.send_action_result("create_issue", "o/r", success=True) == Ok(None)
            await until(lambda: client.status == "disconnected")
            await _settled(member)
            await member.clock.advance(23.9)
            assert len(room.visits) == 1
            await member.clock.advance(12.2)
            await until(lambda: client.is_active)


async def test_a_room_that_says_it_closes_and_never_does_is_left_after_a_minute() -> None:
    async def linger(visit: Visit) -> None:
        await visit.welcome()
        await visit.tell(type="shutdown", reason="Server shutting down", timestamp=AT)
        await visit.until_gone()

    room = ScriptedRoom(linger)
    async with room.open():
        member = Member(at(room.url))
        async with living(member) as client:
            await until(lambda: client.status == "draining")
            await member.clock.advance(59)
            assert client.status == "draining"
            await member.clock.advance(1)
            await until(lambda: client.status == "disconnected")


async def test_a_room_that_takes_us_and_says_nothing_is_left_after_fifteen_seconds() -> None:
    async def silent(visit: Visit) -> None:
        await visit.until_gone()

    room = ScriptedRoom(silent, _stay)
    async with room.open():
        member = Member(at(room.url))
        async with living(member) as client:
            await until(lambda: room.visits and room.visits[0].said)
            await member.clock.advance(15.1)
            await _settled(member)
            assert client.joins == 0
            await member.clock.advance(6.1)
            await until(lambda: client.is_active)


async def test_a_room_that_went_away_without_a_word_is_noticed_by_its_silence() -> None:
    noticed = asyncio.Event()

    async def freeze(visit: Visit) -> None:
        await visit.welcome()
        visit.socket.transport.pause_reading()
        await noticed.wait()
        visit.socket.transport.abort()

    room = ScriptedRoom(freeze, _stay)
    async with room.open():
        member = Member(at(room.url), keepalive_s=0.1)
        async with living(member) as client:
            await until(lambda: client.is_active)
            await _settled(member)
            await member.clock.advance(6.1)
            await until(lambda: client.joins == 2)
        noticed.set()


async def test_a_record_larger_than_a_member_may_send_does_not_keep_it_out() -> None:
    async def talkative(visit: Visit) -> None:
        words = "long thoughts " * 1_000
        at_all_times = (f"2026-01-05T11:{second // 60:02}:{second % 60:02}.000Z" for second in range(200))
        entries = [
            {"timestamp": moment, "agentName": "bob", "agentId": "bob-1", "type": "chat", "content": words}
            for moment in at_all_times
        ]
        await visit.welcome(entries=entries)
        await visit.until_gone()

    room = ScriptedRoom(talkative)
    async with room.open(), living(Member(at(room.url))) as client:
        await until(lambda: client.is_active)
        assert len(client.get_and_flush_messages()) == 200


async def test_a_room_that_talks_without_end_does_not_stop_everything_else() -> None:
    enough = asyncio.Event()

    async def flood(visit: Visit) -> None:
        await visit.welcome()
        while not enough.is_set():
            await visit.chat("bob", "and another thing")
        await visit.until_gone()

    room = ScriptedRoom(flood)
    async with room.open(), living(Member(at(room.url))) as client:
        await until(lambda: client.is_active)
        for _ in range(20):
            assert await client.send_state("idle") in (
                Ok(None),
                Err("too much is told at once", "transient", retry_after=5.0),
            )
        assert len(client.get_and_flush_messages()) <= 500
        enough.set()


@asynccontextmanager
async def _answering(reply: bytes) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 301 Moved\r\nLocation: ws://203.0.113.9/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
    ],
    ids=["a redirect", "an error", "another protocol", "nothing"],
)
async def test_what_is_no_room_is_tried_again_later_and_leads_nowhere_else(reply: bytes) -> None:
    async with _answering(reply) as url:
        member = Member(at(url))
        async with living(member) as client:
            await until(lambda: client._member._cycle._failures == 1)
            await _settled(member)
            await member.clock.advance(6.1)
            await until(lambda: client._member._cycle._failures == 2)


@pytest.mark.parametrize("url", ["ws://", "http://127.0.0.1:1", "nonsense", "ws://127.0.0.1:99999", "ws://[::1"])
async def test_an_address_that_is_none_does_not_end_its_life(url: str) -> None:
    member = Member(at(url))
    async with living(member) as client:
        await until(lambda: client._member._cycle._failures == 1)


async def test_looks_for_a_room_again_and_again_and_says_once_that_there_is_none() -> None:
    room = ScriptedRoom(_stay)
    found: list[ApiResult[str]] = [Err("nobody advertises one", "not_found")] * 3

    async def find() -> ApiResult[str]:
        return found.pop(0) if found else Ok(room.url)

    async with room.open():
        member = Member(find, reconnect_interval_s=lambda: 100.0)
        async with living(member) as client:
            for seconds in (36.1, 120.1, 120.1):
                await until(lambda: _sleeps(member))
                await member.clock.advance(seconds)
            await until(lambda: client.is_active)
    assert member.told("No agent space found") == ["nobody advertises one"]


async def test_words_wait_through_a_short_loss_but_not_for_ever() -> None:
    async def deaf(visit: Visit) -> None:
        await visit.welcome()
        await visit.hear("chat")
        await visit.socket.close(4002)

    room = ScriptedRoom(deaf)
    async with room.open():
        member = Member(at(room.url))
        async with living(member) as client:
            await until(lambda: client.is_active)
            sent = await client.send_chat("one")
            assert isinstance(sent, Ok)
            await _settled(member)
            await member.clock.advance(60)
            assert await client.delivered(sent.data) == Err("it could not be said within 60 s", "transient")


async def test_whoever_waits_for_an_echo_is_told_when_the_program_stops() -> None:
    room = ScriptedRoom(_stay)
    async with room.open():
        async with living(Member(at(room.url))) as client:
            await until(lambda: client.is_active)
            sent = await client.send_chat("one")
            assert isinstance(sent, Ok)
        assert await client.delivered(sent.data) == Err("we left the agent space", "transient")


async def test_lives_once_at_a_time_and_can_be_cancelled_anywhere() -> None:
    room = ScriptedRoom(_stay)
    async with room.open():
        client = Member(at(room.url)).client
        async with asyncio.TaskGroup() as group:
            life = group.create_task(client.run())
            await until(lambda: client.is_active)
            with pytest.raises(RuntimeError, match="lives already"):
                await client.run()
            life.cancel()
        assert client.status == "disconnected"
        await until(lambda: room.live == 0)
        assert room.visits[0].socket.close_code == 1000


async def test_what_the_owners_line_cannot_bear_ends_its_life_as_what_it_is() -> None:
    async def tell(kind: str, message: str, detail: str) -> None:
        raise StorageError("the disk is full")

    room = ScriptedRoom(_stay)
    async with room.open():
        client = SpaceClient(
            agent_name="ada",
            agent_version="1",
            capabilities=lambda: None,
            discover=at(room.url),
            clock=FakeClock(),
            rng=random.Random(1),
            notice=tell,
        )
        with pytest.raises(StorageError, match="disk is full"):
            await client.run()
        assert client.status == "disconnected"
