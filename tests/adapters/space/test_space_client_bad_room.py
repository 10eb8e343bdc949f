"""Tests of a client in a room that is silent, endless, too large or no room at all: it leaves and tries again later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from common.result import Err, Ok
from tests.adapters.space.running_member import Member, at, running_client, settled
from tests.adapters.space.scripted_room import ScriptedRoom, Visit, stay
from tests.patience import until


async def test_a_room_that_takes_us_and_says_nothing_is_left_after_fifteen_seconds() -> None:
    async def silent(visit: Visit) -> None:
        await visit.until_gone()

    room = ScriptedRoom(silent, stay)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: room.visits and room.visits[0].said)
            await member.clock.advance(15.1)
            await settled(member)
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

    room = ScriptedRoom(freeze, stay)
    async with room.open():
        member = Member(at(room.url), keepalive_s=0.1)
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            await settled(member)
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
    async with room.open(), running_client(Member(at(room.url))) as client:
        await until(lambda: client.is_active)
        assert len(client.inbox.take_messages()) == 200


@pytest.mark.slow
async def test_a_room_that_talks_without_end_does_not_stop_everything_else() -> None:
    enough = asyncio.Event()

    async def flood(visit: Visit) -> None:
        await visit.welcome()
        while not enough.is_set():
            await visit.chat("bob", "and another thing")
        await visit.until_gone()

    room = ScriptedRoom(flood)
    async with room.open(), running_client(Member(at(room.url))) as client:
        await until(lambda: client.is_active)
        for _ in range(20):
            assert await client.send_state("idle") in (
                Ok(None),
                Err("too much is told at once", "transient", retry_after=5.0),
            )
        assert len(client.inbox.take_messages()) <= 500
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
    [b"HTTP/1.1 301 Moved\r\nLocation: ws://203.0.113.9/\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n"],
    ids=["a redirect", "another protocol"],
)
async def test_what_is_no_room_is_tried_again_later_and_leads_nowhere_else(reply: bytes) -> None:
    async with _answering(reply) as url:
        member = Member(at(url))
        async with running_client(member) as client:
            await until(lambda: client._member._cycle._failures == 1)
            await settled(member)
            await member.clock.advance(6.1)
            await until(lambda: client._member._cycle._failures == 2)


@pytest.mark.parametrize("url", ["ws://", "http://127.0.0.1:1", "nonsense", "ws://127.0.0.1:99999", "ws://[::1"])
async def test_an_address_that_is_none_does_not_end_its_life(url: str) -> None:
    member = Member(at(url))
    async with running_client(member) as client:
        await until(lambda: client._member._cycle._failures == 1)
