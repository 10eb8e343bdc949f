"""Proves that members and rooms written in JavaScript, on the libraries that others use, work with ours."""

import asyncio
import json
import random
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.space.client import SpaceClient
from adapters.space.server import SpaceServer
from adapters.space.types import Claimed, IdentitySummary
from common.clock import SystemClock
from common.result import ApiResult, Ok
from tests.interop.peers import HERE, Peer, node
from tests.patience import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(90)]


@pytest.fixture(scope="session", autouse=True)
def _libraries() -> None:
    subprocess.run(["bash", str(HERE / "install.sh")], check=True)


@asynccontextmanager
async def our_room() -> AsyncIterator[tuple[SpaceServer, str]]:
    server = SpaceServer()
    started = await server.start(0)
    assert isinstance(started, Ok)
    try:
        yield server, f"ws://127.0.0.1:{started.data}"
    finally:
        await server.stop()


@asynccontextmanager
async def our_member(url: str, name: str = "maren") -> AsyncIterator[SpaceClient]:
    async def find() -> ApiResult[str]:
        return Ok(url)

    client = SpaceClient(
        agent_name=name,
        agent_version="0.1.0",
        capabilities=lambda: ("social", "github", "code"),
        discover=find,
        clock=SystemClock(),
        rng=random.Random(1),
    )
    running = asyncio.create_task(client.run())
    try:
        await until(lambda: client.is_active)
        yield client
    finally:
        await client.close()
        await running


async def joined(peer: Peer) -> None:
    await peer.next("frame", type_="history_response")


async def test_a_javascript_member_joins_our_room_and_its_join_comes_back_byte_by_byte() -> None:
    async with (
        our_room() as (_, url),
        node("member.mjs", name="sh-marvin", id="m1", capabilities=["social", 5, "github"], url=url) as marvin,
    ):
        join = await marvin.next("frame", type_="join")
        assert join == (
            '{"type":"join","name":"sh-marvin","id":"m1","version":"10.1.0","capabilities":["social","github"]}'
        )
        present = await marvin.frame("presence")
        assert [agent["name"] for agent in present["agents"]] == ["sh-marvin"]
        assert set(present) == {"type", "agents"}
        history = await marvin.frame("history_response")
        assert [entry["type"] for entry in history["entries"]] == ["join"]


async def test_a_javascript_member_and_ours_talk_claim_and_end_in_our_room() -> None:
    async with (
        our_room() as (server, url),
        our_member(url) as maren,
        node("member.mjs", name="rebecca", url=url) as rebecca,
    ):
        await joined(rebecca)
        await until(lambda: "rebecca" in maren.peers())
        server.broadcast_from_host("Good morning, @rebecca and maren")
        assert (await rebecca.frame("chat"))["addressed"] == ["rebecca", "maren"]
        await rebecca.send(type="chat", content="Fog again — 你好 \U0001f32b")
        await maren.send_chat("Then the horn is worth its bread.")
        received = await rebecca.frame("chat")
        while received["name"] != "maren":
            received = await rebecca.frame("chat")
        assert received["content"] == "Then the horn is worth its bread."
        await rebecca.send(type="claim", action="create_issue", target="acme/site#Clock")
        await until(lambda: maren.has_active_claim("create_issue", "acme/site#Clock") == "rebecca")
        await maren.send_claim("create_issue", "acme/site#Clock")
        await until(lambda: ("create_issue", "acme/site#Clock") in maren.view.claims.lost)
        await rebecca.send(
            type="action_result", action="create_issue", target="acme/site#Clock", success=True, link="x"
        )
        await until(lambda: maren.has_active_claim("create_issue", "acme/site#Clock") is None)
        said = [one.content for one in maren.inbox.take_messages()]
        assert said == ["Good morning, @rebecca and maren", "Fog again — 你好 \U0001f32b"]
        await rebecca.tell("leave")
        assert (await rebecca.next("close")).startswith("1000")
        await until(lambda: "rebecca" not in maren.peers())


async def test_a_javascript_member_that_comes_back_under_its_id_is_not_fought_with() -> None:
    async with (
        our_room() as (server, url),
        node("member.mjs", name="rebecca", id="r1", url=url) as old,
    ):
        await joined(old)
        async with node("member.mjs", name="rebecca", id="r1", url=url) as new:
            await joined(new)
            server.broadcast_from_host("Who is there?")
            assert (await new.frame("chat"))["content"] == "Who is there?"
            assert [agent.name for agent in server.get_connected_agents()] == ["rebecca"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await old.next("close")


async def test_our_member_joins_a_javascript_room_hears_its_past_and_speaks() -> None:
    async with node("room.mjs", host="127.0.0.1") as room:
        url = f"ws://127.0.0.1:{await room.next('listening')}"
        await room.tell("Yesterday's words")
        async with our_member(url) as maren, our_member(url, "odile") as odile:
            past = maren.inbox.take_messages()
            assert [(one.content, one.replayed, one.by_host) for one in past] == [("Yesterday's words", True, True)]
            await until(lambda: set(maren.peers()) == {"odile"})
            assert odile.peers()["maren"].capabilities == ("social", "github", "code")
            await maren.send_identity(IdentitySummary(("care",), ("tides",), "dry", ("fog",), "-", "I keep logs."))
            await until(lambda: odile.view.identities().get("maren", IdentitySummary()).voice == "dry")
            odile.inbox.take_messages()
            first, second = await maren.send_chat("One."), await maren.send_chat("Two, right after.")
            assert isinstance(first, Ok)
            assert isinstance(second, Ok)
            assert await maren.delivered(second.data) == Ok(data=True)
            received: list[str] = []

            def both() -> bool:
                received.extend(one.content for one in odile.inbox.take_messages())
                return len(received) > 1

            await until(both)
            assert received == ["One.", "Two, right after."]
            await odile.send_claim("post_bluesky", "tides")
            await until(lambda: any(isinstance(event, Claimed) for event in maren.inbox.take_events()))


async def test_our_frames_carry_what_javascript_members_expect_and_nothing_is_null() -> None:
    async with node("room.mjs", host="127.0.0.1") as room:
        url = f"ws://127.0.0.1:{await room.next('listening')}"
        async with our_member(url) as maren:
            await maren.send_typing()
            await maren.send_state("acting", "writing")
            await maren.send_reflection("Less is more.")
            await maren.send_workspace_state("acme/site", total=3, completed=1)
            seen: list[dict[str, object]] = []
            while not seen or seen[-1]["type"] != "workspace_state":
                seen.append(json.loads(await room.next("got")))
        assert [one["type"] for one in seen] == ["join", "typing", "state", "reflection", "workspace_state"]
        for frame in seen:
            assert None not in frame.values()
            assert frame["name"] == "maren"
            assert str(frame["id"]).startswith("maren-")
            assert str(frame["timestamp"]).endswith("Z")


async def test_our_member_is_back_after_a_javascript_room_was_killed_and_started_again() -> None:
    async with node("room.mjs", host="127.0.0.1") as room:
        port = int(await room.next("listening"))
        async with our_member(f"ws://127.0.0.1:{port}") as maren:
            room.process.kill()
            await room.process.wait()
            await until(lambda: not maren.is_active)
            async with node("room.mjs", host="127.0.0.1", port=port) as again:
                await again.next("listening")
                await until(lambda: maren.is_active, 30)
                await again.tell("Are you back?")
                await until(lambda: any(one.content == "Are you back?" for one in maren.inbox.take_messages()))
