"""A client that loses its room, in every way in which rooms are lost, and comes back: once, and never deaf."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.space.client import SpaceClient
from common.clock import FakeClock
from common.errors import StorageError
from common.result import ApiResult, Err, Ok
from tests.adapters.space.running_member import Member, at, running_client, settled, sleeps
from tests.adapters.space.scripted_room import AT, ScriptedRoom, Visit, stay
from tests.loopback import held_port
from tests.patience import until


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as held:
        yield held


async def test_whoever_keeps_our_name_lets_us_come_in_under_another_within_a_minute() -> None:
    async def displace(visit: Visit) -> None:
        await visit.welcome()
        await visit.socket.close(4004, "Replaced by new connection")

    room = ScriptedRoom(displace)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member):
            waits = [(4, 6), (8, 12), (16, 24), (4, 6), (8, 12), (16, 24), (48, 72), (48, 72)]
            for visits, (least, most) in enumerate(waits, start=1):
                await room.visited(visits)
                await settled(member)
                began = member.clock.monotonic()
                while member.client.status == "disconnected":
                    await member.clock.advance(0.5)
                    await until(lambda: sleeps(member) or member.client.status != "disconnected")
                assert least <= member.clock.monotonic() - began <= most + 2
            warnings = [message for kind, message, _ in member.notices if kind == "warn"]
            names = [visit.me["name"] for visit in room.visits]
            assert names[:5] == ["ada", "ada", "ada", "ada", "ada-2"]
            assert len(set(names[:8])) == 5
            assert warnings[0] == "The agent space will not have us; trying again as long as it takes"
            assert "AGENT_NAME" in member.told(warnings[0])[0]
            come = [warning.removeprefix("Coming into the agent space as ") for warning in warnings[1:]]
            assert come[:4] == names[4:8]


async def test_two_messages_without_an_echo_and_we_come_in_anew() -> None:
    async def mute(visit: Visit) -> None:
        await visit.welcome()
        await visit.until_gone()

    room = ScriptedRoom(mute, stay)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            for number, words in enumerate(("one", "two"), start=1):
                sent = await client.send_chat(words)
                assert isinstance(sent, Ok)
                await room.said(1 + number)
                assert client.joins == 1
                await until(lambda: sleeps(member))
                await member.clock.advance(5.1)
                assert await client.delivered(sent.data) == Ok(data=False)
            await settled(member)
            await member.clock.advance(6)
            await member.joined(2)
    assert "it did not hear us" in member.told("Disconnected from agent space")


async def test_an_invalid_join_is_told_with_the_rooms_own_words() -> None:
    async def refuse(visit: Visit) -> None:
        await visit.receive("join")
        await visit.tell(type="error", message="Invalid join: the name host is taken")
        await visit.socket.close(4003, "Invalid join message")

    room = ScriptedRoom(refuse)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member):
            await until(lambda: member.told("The agent space will not have us; trying again in 5 minutes"))
        told = member.told("The agent space will not have us; trying again in 5 minutes")
        assert "the name host is taken" in told[0]


async def test_a_wrong_token_is_told_and_not_tried_again_and_again() -> None:
    asked = 0

    async def refuse(connection: ServerConnection, request: Request) -> Response:
        nonlocal asked
        asked += 1
        return connection.respond(401, "no")

    async def nobody(connection: ServerConnection) -> None:
        raise AssertionError("nobody gets in")

    async with serve(nobody, "127.0.0.1", 0, process_request=refuse) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        member = Member(at(f"ws://127.0.0.1:{port}/?token=wrong-one"))
        async with running_client(member):
            await until(lambda: member.told("The agent space will not have us; trying again in 5 minutes"))
            await settled(member)
            await member.clock.advance(290)
            assert asked == 1
    assert "wrong-one" not in repr(member.notices)


async def test_stays_while_the_room_closes_and_says_what_is_left() -> None:
    async def close_in_order(visit: Visit) -> None:
        await visit.welcome()
        await visit.tell(type="shutdown", reason="Server shutting down", timestamp=AT)
        await visit.echo(await visit.receive("chat"))
        await visit.receive("action_result")
        await visit.socket.close(1001, "Server shutting down")

    room = ScriptedRoom(close_in_order, stay)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.status == "draining")
            assert client.is_active
            sent = await client.send_chat("Done — it is there")
            assert isinstance(sent, Ok)
            assert await client.delivered(sent.data) == Ok(data=True)
            assert await client.send_action_result("create_issue", "o/r", success=True) == Ok(None)
            await until(lambda: client.status == "disconnected")
            await settled(member)
            await member.clock.advance(23.9)
            assert len(room.visits) == 1
            await member.clock.advance(12.2)
            await until(lambda: client.is_active)


async def test_looks_for_a_room_again_and_again_and_says_once_that_there_is_none() -> None:
    room = ScriptedRoom(stay)
    found: list[ApiResult[str]] = [Err("nobody advertises one", "not_found")] * 3

    async def find() -> ApiResult[str]:
        return found.pop(0) if found else Ok(room.url)

    async with room.open():
        member = Member(find, reconnect_interval_s=lambda: 100.0)
        async with running_client(member) as client:
            for seconds in (36.1, 120.1, 120.1):
                await until(lambda: sleeps(member))
                await member.clock.advance(seconds)
            await until(lambda: client.is_active)
    assert member.told("No agent space found") == ["nobody advertises one"]


async def test_whoever_waits_for_an_echo_is_told_when_the_program_stops() -> None:
    room = ScriptedRoom(stay)
    async with room.open():
        async with running_client(Member(at(room.url))) as client:
            await until(lambda: client.is_active)
            sent = await client.send_chat("one")
            assert isinstance(sent, Ok)
        assert await client.delivered(sent.data) == Err("we left the agent space", "transient")


async def test_lives_once_at_a_time_and_can_be_cancelled_anywhere() -> None:
    room = ScriptedRoom(stay)
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

    room = ScriptedRoom(stay)
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
