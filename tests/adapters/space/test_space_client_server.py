"""Our members in a room of our own server: talk, claims, a wrong token, a slow closing, and a server that is killed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.space.client import SpaceClient
from adapters.space.server import SpaceServer
from adapters.space.types import ActionDone
from common.clock import Clock, FakeClock
from common.result import Ok
from tests.adapters.space.running_member import Member, at, running_client
from tests.children import child_of
from tests.patience import until


async def _room(*, token: str = "", clock: Clock | None = None) -> SpaceServer:
    server = SpaceServer(token=token, clock=clock)
    started = await server.start(0)
    assert isinstance(started, Ok)
    return server


def _url(server: SpaceServer) -> str:
    return f"ws://127.0.0.1:{server.port}"


def _contents(client: SpaceClient) -> list[str]:
    return [said.content for said in client._member.inbox._messages]


async def test_the_second_to_claim_the_same_learns_that_it_was_second() -> None:
    server = await _room()
    ada, bob = Member(at(_url(server))), Member(at(_url(server)), agent_name="bob")
    async with running_client(ada), running_client(bob):
        await until(lambda: ada.client.is_active and bob.client.is_active)
        await asyncio.gather(*(one.client.send_claim("create_issue", "o/r") for one in (ada, bob)))
        await until(lambda: ada.client.lost_claims() or bob.client.lost_claims())
        loser, holder = (ada, bob) if ada.client.lost_claims() else (bob, ada)
        assert loser.client.lost_claims() == {("create_issue", "o/r")}
        assert loser.client.has_active_claim("create_issue", "o/r") == holder.client.name
        assert holder.client.lost_claims() == set()
        await holder.client.send_action_result("create_issue", "o/r", success=True, link="https://x/1")
        await until(lambda: any(isinstance(event, ActionDone) for event in loser.client._member.inbox._events))
        assert loser.client.has_active_claim("create_issue", "o/r") is None
    await server.stop()


async def test_what_it_can_do_is_told_anew_and_once_when_it_changes() -> None:
    server, able = await _room(), ["social", "github"]
    ada, bob = Member(at(_url(server)), capabilities=lambda: able), Member(at(_url(server)), agent_name="bob")
    async with running_client(ada), running_client(bob):
        await until(lambda: ada.client.is_active and "ada" in bob.client.peers())
        assert not ada.client.renew()
        for times in (2, 3):
            able[:] = ["social", "github"] if not able else []
            assert ada.client.renew()
            await ada.joined(times)
            await until(lambda: bob.client.peers()["ada"].capabilities == tuple(able))
            assert not ada.client.renew()
        await until(lambda: [one.name for one in server.get_connected_agents()] == ["bob", "ada"])
        server.broadcast_from_host("welcome back")
        await until(lambda: _contents(ada.client) == ["welcome back"])
    assert ada.told("Joining anew") == ["what we can do has changed"] * 2
    await server.stop()


async def test_a_second_program_of_our_name_is_refused_and_says_so_until_the_first_is_gone() -> None:
    server = await _room()
    first = Member(at(_url(server)))
    async with running_client(first):
        await until(lambda: first.client.is_active)
        second = Member(at(_url(server)), clock=FakeClock(datetime(2026, 1, 6, tzinfo=UTC)))
        async with running_client(second):
            await until(lambda: second.told("The agent space will not have us; trying again as long as it takes"))
            assert first.client.is_active
            assert [agent.id for agent in server.get_connected_agents()] == [first.client.agent_id]
            await first.client.close()
            await until(lambda: not server.get_connected_agents())
            await second.comes_in()
    await server.stop()


async def _port(server: asyncio.subprocess.Process) -> int:
    assert server.stdout
    return int(await server.stdout.readline())


@pytest.mark.slow
async def test_after_the_server_was_killed_and_restarted_a_member_is_back_once_and_hears_again(tmp_path: Path) -> None:
    child = ("tests.adapters.space.room_child", str(tmp_path))
    async with child_of(*child, "0") as server:
        port = await _port(server)
        ada, bob = Member(at(f"ws://127.0.0.1:{port}")), Member(at(f"ws://127.0.0.1:{port}"), agent_name="bob")
        async with running_client(ada), running_client(bob):
            await until(lambda: "bob" in ada.client.peers() and "ada" in bob.client.peers())
            sent = await bob.client.send_chat("before")
            assert isinstance(sent, Ok)
            assert await bob.client.delivered(sent.data) == Ok(data=True)
            await until(lambda: _contents(ada.client) == ["before"])
            server.kill()
            await server.wait()
            await until(lambda: ada.client.status == bob.client.status == "disconnected")
            async with child_of(*child, str(port)) as again:
                assert await _port(again) == port
                assert again.stdin
                assert await ada.comes_in() <= 10
                assert await bob.comes_in() <= 10
                await until(lambda: "bob" in ada.client.peers())
                assert ada.client.joins == bob.client.joins == 2
                assert list(ada.client.peers()) == ["bob"]
                assert [agent.name for agent in ada.client._member.view._present.values()].count("ada") == 1
                assert not ada.client.fresh_room
                again.stdin.write(b"is everybody back?\n")
                await until(lambda: "is everybody back?" in _contents(ada.client))
                assert _contents(ada.client) == ["before", "is everybody back?"]
