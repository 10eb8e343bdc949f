"""A client in a room of plain WebSockets: joining, hearing, saying, and what the room's refusals do."""

from __future__ import annotations

import asyncio
import logging

import pytest

from adapters.space.client import SpaceClient
from adapters.space.types import (
    ActionDone,
    Claimed,
    History,
    IdentitySummary,
    LogEntry,
    Reflected,
    Said,
    WorkspaceProgress,
)
from common.result import Err, Ok
from modules.services.commitments.naming import CommitmentRoom
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.scripted_room import AT, ScriptedRoom, Visit, entry, present_as
from tests.patience import until


async def _welcome(visit: Visit) -> None:
    await visit.welcome()
    await visit.until_gone()


def _contents(messages: list[Said]) -> list[str]:
    return [said.content for said in messages]


def _record(client: SpaceClient) -> tuple[LogEntry, ...]:
    return next(event.entries for event in client._member.inbox._events if isinstance(event, History))


async def test_joins_with_its_name_version_and_capabilities_and_leaves_in_order() -> None:
    room = ScriptedRoom(_welcome)
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
    room = ScriptedRoom(_welcome)
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
            received = client.get_and_flush_messages()
            assert [(said.name, said.replayed) for said in received] == [("bob", True), ("ada", True), ("bob", False)]
            assert client.fresh_room
            await client.send_typing()
            await until(lambda: client.status == "disconnected")
            await member.clock.advance(6)
            await until(lambda: client.joins == 2)
            await until(lambda: len(_record(client)) == 4)
            assert client.get_and_flush_messages() == []
            assert not client.fresh_room


async def test_tells_the_room_everything_in_the_form_of_the_wire() -> None:
    room = ScriptedRoom(_welcome)
    async with room.open():
        member = Member(at(room.url))
        async with running_client(member) as client:
            await until(lambda: client.is_active)
            in_a_room: CommitmentRoom = client
            told = [
                await client.send_typing(),
                await client.send_identity(IdentitySummary(("truth",), ("bees",), "calm", ("code",), "a site")),
                await in_a_room.send_claim("create_issue", "o/r"),
                await in_a_room.renew_claim("create_issue", "o/r"),
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
    room = ScriptedRoom(_welcome)
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
    room = ScriptedRoom(_welcome)
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
            assert _contents(client.get_and_flush_messages()) == ["news"]


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
        assert [event for event in client.take_events() if not isinstance(event, Claimed)] == shown
        assert client.reflections() == {"bob": Reflected("bob", "bob-1", "I rush", AT)}
        assert client.workspace_states() == {"site": WorkspaceProgress("bob", "bob-1", "site", 0, 3, 0, 0, 0, AT)}


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
