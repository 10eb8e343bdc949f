"""Tests of a client in a room of plain WebSockets: joining, receiving, speaking, and what the room's refusals do.

A client that loses its room, in every way in which rooms are lost, comes back once and receives messages again. It
sends one message after the other, each once, whatever happens to the room.
"""

import asyncio
import logging
import random
from collections.abc import Iterator

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from adapters.space.client import SpaceClient
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    IdentitySummary,
    LogEntry,
    Reflected,
    Refused,
    Said,
    WorkspaceProgress,
)
from common.clock import FakeClock
from common.errors import StorageError
from common.result import ApiResult, Err, Ok
from modules.services.commitments.naming import CommitmentRoom
from tests.adapters.space.running_member import Member, at, running_client, settled, sleeps
from tests.adapters.space.scripted_room import AT, ScriptedRoom, Visit, entry, present_as, stay
from tests.loopback import held_port
from tests.patience import until


def _contents(messages: list[Said]) -> list[str]:
    return [said.content for said in messages]


def _record(client: SpaceClient) -> tuple[LogEntry, ...]:
    return next(event.entries for event in client._member.inbox._events if isinstance(event, History))


async def test_joins_with_its_name_version_and_capabilities_and_leaves_in_order() -> None:
    room = ScriptedRoom(stay)
    async with room.open():
        member = Member(at(f"{room.url}/?token=hush-hush"))
        async with running_client(member) as client:
            await until(lambda: client.status == "joined")
            assert client.is_active
            assert room.visits[0].me == {
                "type": "join",
                "name": "ada",
                "id": client.agent_id,
                "version": "1.2.3",
                "capabilities": ["social", "code"],
                "resume": "",
                "timestamp": AT,
            }
            request = room.visits[0].socket.request
            assert request
            assert request.path == "/?token=hush-hush"
            await until(lambda: member.told("Joined agent space"))
        await until(lambda: room.live == 0)
        assert room.visits[0].socket.close_code == 1000
        assert room.visits[0].socket.close_reason == "Client disconnecting"
    assert client.status == "disconnected"
    assert client.url == room.url
    assert member.told("Space discovered") == member.told("Joined agent space") == [room.url]
    assert "hush" not in repr(member.notices)


async def test_the_token_stands_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    room = ScriptedRoom(stay)
    async with room.open(), running_client(Member(at(f"{room.url}/?token=hush-hush"))) as client:
        await until(lambda: client.is_active)
    told = {record.name for record in caplog.records if "hush" in record.getMessage()}
    assert told == {"websockets.server"}, "the scripted room tells it, and nobody else"


async def test_the_record_comes_once_per_join_and_is_marked() -> None:
    async def script(visit: Visit) -> None:
        old = [entry("chat", "bob", "of yesterday"), entry("join", "bob"), entry("chat", "ada", "mine of yesterday")]
        await visit.welcome(entries=old)
        if visit.number == 0:
            await visit.chat("bob", "of today")
            await visit.receive("typing")
            await visit.socket.close(1011)
            return
        await visit.tell(type="history_response", entries=[*old, entry("chat", "bob", "of today")])
        await visit.until_gone()

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: len(client._member.inbox._messages) == 3)
            received = client.inbox.take_messages()
            assert [(said.name, said.replayed) for said in received] == [("bob", True), ("ada", True), ("bob", False)]
            assert client.inbox.fresh_room
            await client.send_typing()
            await until(lambda: client.status == "disconnected")
            await member.clock.advance(6)
            await until(lambda: client.joins == 2)
            await until(lambda: len(_record(client)) == 4)
            assert client.inbox.take_messages() == []
            assert not client.inbox.fresh_room


async def test_tells_the_room_everything_in_the_form_of_the_wire() -> None:
    room = ScriptedRoom(stay)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            in_a_room: CommitmentRoom = client
            told = [
                await client.send_typing(),
                await client.send_identity(IdentitySummary(("truth",), ("bees",), "calm", ("code",), "a site")),
                await in_a_room.send_claim("create_issue", "o/r"),
                await in_a_room.send_claim("create_issue", "o/r"),
                await in_a_room.send_state("acting", "an issue"),
                await in_a_room.send_action_result("create_issue", "o/r", success=True, link="https://x/1"),
                await client.send_reflection("I rush"),
                await client.send_workspace_state("site", total=5, completed=2, plan_number=1),
            ]
            assert told == [Ok(None)] * 8
            await until(lambda: len(room.visits[0].said) == 9)
            frames = room.visits[0].said[1:]
            assert {(frame["name"], frame["id"], frame["timestamp"]) for frame in frames} == {
                ("ada", client.agent_id, AT)
            }
            kinds = [frame["type"] for frame in frames]
            assert kinds == [
                "typing",
                "identity",
                "claim",
                "claim",
                "state",
                "action_result",
                "reflection",
                "workspace_state",
            ]
            assert frames[1]["summary"]["currentInterests"] == ["bees"]
            assert (frames[4]["state"], frames[4]["detail"]) == ("acting", "an issue")
            assert (frames[7]["totalTasks"], frames[7]["inProgressTasks"]) == (5, 0)


async def test_does_not_tell_so_much_at_once_that_the_room_would_cut_it_off() -> None:
    room = ScriptedRoom(stay)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            told = [await client.send_state("thinking") for _ in range(16)]
            assert told[:15] == [Ok(None)] * 15
            assert isinstance(told[15], Err)
            assert told[15].retry_after == 5
            await member.clock.advance(5)
            assert await client.send_state("idle") == Ok(None)


async def test_outside_a_room_everything_answers_that_there_is_none() -> None:
    client = Member(at("ws://127.0.0.1:1")).client
    no = Err("not connected to an agent space", "transient")
    assert not client.is_active
    assert await client.send_chat("hello") == no
    assert await client.send_typing() == no
    assert await client.send_claim("a", "b") == no
    assert await client.send_action_result("a", "b", success=False, error="x") == no


async def test_there_must_be_something_to_say() -> None:
    room = ScriptedRoom(stay)
    async with room.open(), running_client(Member(at(room.url))) as client:
        await until(lambda: client.is_active)
        assert await client.send_chat(" \n ") == Err("there is nothing to say", "invalid")


async def test_news_wake_whoever_waits_for_them_and_silence_does_not() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome(agents=[present_as("bob")])
        await visit.receive("typing")
        await visit.tell(type="typing", name="bob", id="bob-1", timestamp=AT)
        await visit.chat("ada", "our own echo")
        await visit.receive("state")
        await visit.chat("bob", "news")
        await visit.until_gone()

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            assert await client.wait_for_news(5)
            await until(lambda: client.is_active)
            await client.wait_for_news(0)
            await client.send_typing()
            await until(lambda: any(isinstance(event, Said) for event in client._member.inbox._events))
            assert not await client.wait_for_news(0)
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(client.wait_for_news(1000))
                await client.send_state("idle")
            assert waiting.result()
            assert _contents(client.inbox.take_messages()) == ["news"]


async def test_the_owner_is_told_once_what_the_room_refuses_or_says_without_sense() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome()
        for _ in range(3):
            await visit.tell(type="error", message="Invalid state: no such thing")
            await visit.socket.send("{")
        await visit.chat("bob", "so much for that")
        await visit.until_gone()

    room = ScriptedRoom(script)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client._member.inbox._messages)
            await until(lambda: member.told("The agent space said something unreadable"))
            assert member.told("The agent space refused something: Invalid state") == ["Invalid state: no such thing"]
            assert len([kind for kind, _, _ in member.notices if kind == "warn"]) == 2


async def test_introduces_itself_after_each_join_and_survives_a_broken_introduction() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome()
        await visit.receive("identity")
        await visit.socket.close(1011)

    room = ScriptedRoom(script)
    async with room.open():
        clients: list[SpaceClient] = []

        async def introduce() -> None:
            await clients[0].send_identity(IdentitySummary(voice="calm"))
            raise OSError("SELF.md is gone")

        member = Member(at(room.url), on_joined=introduce)
        clients.append(member.client)
        async with running_client(member) as client:
            for joins in (1, 2):
                await member.joined(joins)
                await until(lambda: client.status == "disconnected")
                await member.clock.advance(6.1)
            await member.joined(3)
        failed = member.told("We could not introduce ourselves in the agent space")
        assert failed
        assert "SELF.md is gone" in failed[0]


async def test_shows_each_event_at_once_to_whoever_looks_on() -> None:
    async def script(visit: Visit) -> None:
        await visit.welcome()
        await visit.tell(type="reflection", name="bob", id="bob-1", summary="I rush", timestamp=AT)
        await visit.tell(type="workspace_state", name="bob", id="bob-1", workspace="site", totalTasks=3, timestamp=AT)
        done = {"action": "create_issue", "target": "o/r", "success": True, "link": "https://x/1"}
        await visit.tell(type="action_result", name="bob", id="bob-1", **done, timestamp=AT)
        await visit.until_gone()

    shown: list[object] = []
    room = ScriptedRoom(script)
    async with room.open(), running_client(Member(at(room.url), on_event=shown.append)) as client:
        await until(lambda: any(isinstance(event, ActionDone) for event in shown))
        assert [event for event in client.inbox.take_events() if not isinstance(event, Claimed)] == shown
        assert client.view.reflections() == {"bob": Reflected("bob", "bob-1", "I rush", AT)}
        assert client.view.workspace_states() == {"site": WorkspaceProgress("bob", "bob-1", "site", 0, 3, 0, 0, 0, AT)}


NONSENSE: list[str | bytes] = [
    "", "null", "[1,2]", '{"type":["chat"]}', '{"type":{"a":1},"name":"bob"}',
    '{"type":"chat","name":["bob"],"content":5}',
    '{"type":"presence","agents":[[],{"name":1},null]}', '{"type":"history_response","entries":{"0":"x"}}',
    '{"type":"state","name":"bob","state":[]}', '{"type":"claim","name":"bob","action":{},"target":1e999}',
    '{"type":"error","message":[]}', "[" * 10_000 + "]" * 10_000, b"\x00\xff\xfe",
    '{"type":"chat","name":"bob","id":"b","content":"\\ud800","timestamp":"never"}',
]  # fmt: skip


async def test_nothing_that_a_room_says_can_make_it_deaf() -> None:
    async def script(visit: Visit) -> None:
        for frame in NONSENSE:
            await visit.socket.send(frame)
        await visit.welcome()
        for frame in NONSENSE:
            await visit.socket.send(frame)
        await visit.chat("bob", "still there?")
        await visit.until_gone()

    room = ScriptedRoom(script)
    async with room.open(), running_client(Member(at(room.url))) as client:
        await until(lambda: "still there?" in _contents(list(client._member.inbox._messages)))
        assert client.is_active
        assert client.joins == 1


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
