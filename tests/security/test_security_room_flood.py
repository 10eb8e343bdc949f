"""Attacks on a room by members and strangers who want to hold it up, silence somebody or speak as another.

What the members of one address tell a room stays below what a member endures: both limits are tried on one clock.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from adapters.space.client import InboundLimiter
from adapters.space.member_cycle import TAKE_BACK_AFTER_S
from adapters.space.roster import Roster
from adapters.space.server import MAX_ATTEMPTS, SpaceServer
from adapters.space.types import Said
from common.clock import FakeClock
from common.result import Ok
from soul.room_host.host import HostConsole
from soul.room_host.screen import LineScreen
from soul.terminal.plain import Outlet
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.running_room import RawClient, RoomDriver, RunningServer, running_server
from tests.patience import HANG_S, until

ELSEWHERE = ("127.0.0.2", 0)
MEGABYTE = 1_000_000
COSTLY = {
    "objects": '{"type":"identity","summary":{"a":[' + ",".join(['{"a":1}'] * (MEGABYTE // 8)) + "]}}",
    "numbers": '{"type":"identity","summary":{"a":[' + ",".join(["1"] * (MEGABYTE // 2)) + "]}}",
    "strings": '{"type":"identity","summary":{"a":[' + ",".join(['"a"'] * (MEGABYTE // 4)) + "]}}",
    "nesting": '{"type":"identity","summary":' + '{"a":' * (MEGABYTE // 6) + "1" + "}" * (MEGABYTE // 6) + "}",
    "brackets": "[" * MEGABYTE,
    "quotes": '{"type":"chat","content":"' + '\\"' * (MEGABYTE // 2) + '"}',
    "surrogates": '{"type":"identity","summary":{"a":"' + "\\ud800" * (MEGABYTE // 7) + '"}}',
    "digits": '{"type":"identity","summary":{"a":' + "9" * MEGABYTE + "}}",
}


@asynccontextmanager
async def watched_room(folder: Path, **more: Any) -> AsyncIterator[tuple[RunningServer, RawClient]]:
    """Open a room with a member that no attack may disturb; the room's time stands still unless a clock is given."""
    clock = more.pop("clock", None) or FakeClock()
    async with running_server(folder, clock=clock, **more) as running, running.raw_client(max_queue=None) as ada:
        await ada.join("ada")
        yield running, ada


async def undisturbed(running: RunningServer, ada: RawClient) -> list[dict[str, Any]]:
    """Have the host speak; return what Ada receives up to the host's words."""
    running.server.broadcast_from_host("is everybody well?")
    received: list[dict[str, Any]] = []
    while not received or received[-1].get("content") != "is everybody well?":
        received.append(await ada.next())
    return received


async def knocked(url: str, origin: Origin | None) -> int:
    """Return the status that an attempt to connect gets; leave at once if it is let in."""
    try:
        async with connect(url, proxy=None, origin=origin):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


async def all_told(socket: ClientConnection) -> list[dict[str, Any]]:
    """Return what a connection is told until it is closed."""
    told = []
    with contextlib.suppress(ConnectionClosed):
        async with asyncio.timeout(HANG_S):
            while True:
                told.append(json.loads(await socket.recv()))
    return told


async def send_costly(eve: RawClient, kind: str) -> list[dict[str, Any]]:
    """Send five frames of that kind; return five answers of the room."""
    for _ in range(5):
        await eve.send(COSTLY[kind])
    return [await eve.next() for _ in range(5)]


@pytest.mark.parametrize("kind", COSTLY)
@pytest.mark.parametrize("joined", [False, True], ids=["before", "joined"])
async def test_costly_frames_are_errors_and_disturb_nobody(tmp_path: Path, kind: str, *, joined: bool) -> None:
    async with watched_room(tmp_path) as (running, ada), running.raw_client(write_limit=2**24) as eve:
        if joined:
            await eve.join("eve")
        told = await send_costly(eve, kind)
        assert {frame["type"] for frame in told} <= {"error", "chat", "identity", "presence"}
        assert sum(frame["type"] == "error" for frame in told) >= 3
        await undisturbed(running, ada)


@pytest.mark.perf
@pytest.mark.parametrize("kind", COSTLY)
@pytest.mark.parametrize("joined", [False, True], ids=["before", "joined"])
async def test_costly_frames_cost_a_moment_before_a_join_too(tmp_path: Path, kind: str, *, joined: bool) -> None:
    async with watched_room(tmp_path) as (running, _), running.raw_client(write_limit=2**24) as eve:
        if joined:
            await eve.join("eve")
        began = time.process_time()
        await send_costly(eve, kind)
        # NOTE(self): the sender's cost is in it. If parsed, each of the first three takes over a quarter of a second.
        assert time.process_time() - began < 0.7


async def test_of_bytes_each_connection_and_each_address_has_its_budget(tmp_path: Path) -> None:
    clock = FakeClock()
    async with watched_room(tmp_path, clock=clock) as (running, ada):
        wordy = json.dumps({"type": "identity", "summary": {"a": "w" * 900_000}})
        received = 0
        for number in range(12):
            async with running.raw_client(write_limit=2**24) as eve:
                await eve.join(f"eve-{number:c<3}" if number % 2 else f"mal-{number:d<3}")
                for _ in range(3):
                    await eve.send(wordy)
                answers = [(await eve.until("error"))[-1]["message"] for _ in range(3)]
                received += sum(answer.startswith("Invalid identity") for answer in answers)
        assert received == 1
        await undisturbed(running, ada)


async def test_whoever_leaves_and_joins_again_and_again_says_no_more_than_one_who_stays(tmp_path: Path) -> None:
    clock = FakeClock()
    async with watched_room(tmp_path, clock=clock) as (running, ada):
        for number in range(60):
            async with running.raw_client() as eve:
                await eve.send({"type": "join", "name": f"eve the {number}th", "id": "e", "version": "1"})
                await eve.send({"type": "chat", "content": f"spam {number}"})
                told = (await eve.next())["type"]
                while told not in {"error", "chat"}:
                    told = (await eve.next())["type"]
            await until(lambda: running.names() == ["ada"])
        received = await undisturbed(running, ada)
        assert [frame["content"] for frame in received if frame["type"] == "chat"] == ["spam 0", "is everybody well?"]
        assert sum(frame["type"] == "join" for frame in received) <= 10
        await clock.advance(6)
        async with running.raw_client() as eve:
            await eve.join("eve")
            await eve.send({"type": "chat", "content": "patient"})
            assert (await eve.until("chat"))[-1]["content"] == "patient"


async def test_refused_connections_are_told_once_and_then_counted(tmp_path: Path) -> None:
    clock = FakeClock()
    async with watched_room(tmp_path, clock=clock) as (running, ada):
        page = Origin("http://evil.example")
        statuses = [await knocked(running.url, page if number % 2 else None) for number in range(MAX_ATTEMPTS + 40)]
        assert set(statuses) == {101, 403, 429}
        refused = len(statuses) - statuses.count(101)
        assert refused > MAX_ATTEMPTS // 2
        assert len(running.host.lines) == 2
        await clock.advance(61)
        counted = [detail for _, _, detail in running.host.lines[2:]]
        assert len(counted) == 2
        assert sum(int(detail.split()[0]) for detail in counted) == refused - 2
        await undisturbed(running, ada)


async def test_nobody_silences_a_soul_by_joining_as_it_from_the_same_or_another_address(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        marvin = Member(at(running.url), agent_name="marvin")
        async with running_client(marvin) as client:
            await until(lambda: client.is_active)
            fake = {"type": "join", "name": "marvin", "id": client.agent_id, "version": "1"}
            for address, more in (
                (None, {}),
                (ELSEWHERE, {}),
                (None, {"resume": ""}),
                (ELSEWHERE, {"resume": "x" * 43}),
            ):
                async with connect(running.url, proxy=None, local_addr=address) as socket:
                    await socket.send(json.dumps({**fake, **more}))
                    assert [frame["type"] for frame in await all_told(socket)] == ["error"]
                    assert socket.close_code == 4004
            running.server.broadcast_from_host("@marvin are you there?")
            await until(lambda: any("are you there" in said.content for said in client.inbox.take_messages()))
            sent = await client.send_chat("I am.")
            assert isinstance(sent, Ok)
            assert await client.delivered(sent.data) == Ok(data=True)
            assert client.joins == 1


async def test_whoever_joins_as_a_soul_that_is_away_does_not_keep_it_out(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        marvin = Member(at(running.url), agent_name="marvin")
        async with connect(running.url, proxy=None) as fake:
            await fake.send(json.dumps({"type": "join", "name": "marvin", "id": "m", "version": "1"}))
            await RawClient(fake).until("history_response")
            async with running_client(marvin) as client:
                assert await marvin.comes_in() < 60
                assert client.name == "marvin-2"
                assert list(client.peers()) == ["marvin"]
                running.server.broadcast_from_host("@marvin-2 are you there?")
                received: list[Said] = []
                while not received:
                    await client.wait_for_news(1)
                    received = client.inbox.take_messages()
                assert received[0].addressed == ("marvin-2",)
                sent = await client.send_chat("I am.")
                assert isinstance(sent, Ok)
                assert await client.delivered(sent.data) == Ok(data=True)
                assert client.inbox.take_messages() == []
                await fake.close()
                await until(lambda: not client.peers())
                assert not client.renew()
                await marvin.clock.advance(TAKE_BACK_AFTER_S)
                assert client.renew()
                await until(lambda: client.joins == 2 and client.is_active)
                assert client.name == "marvin"
                assert not client.renew()
        assert marvin.told("Coming into the agent space as marvin-2") == [
            "somebody else is there as marvin; we take the name back when it is free"
        ]


async def test_a_crowd_that_comes_with_long_identities_cuts_off_nobody_who_reads(tmp_path: Path) -> None:
    clock = FakeClock()
    identity = {"type": "identity", "summary": {"voice": "v" * 1_500}}
    async with contextlib.AsyncExitStack() as stack, watched_room(tmp_path, clock=clock) as (running, ada):
        names = [f"raw_client {first}{second}" for first in "abcdefg" for second in "bcdfg"]
        crowd = [await stack.enter_async_context(running.raw_client(max_queue=None)) for _ in names]
        for raw_client, name in zip(crowd, names, strict=True):
            await raw_client.join(name)
        for raw_client, name in zip(crowd, names, strict=True):
            await raw_client.send(identity)
            while (told := await raw_client.next())["type"] != "identity" or told["name"] != name:
                pass
        for _ in range(8):
            await clock.advance(0.25)
        received = await undisturbed(running, ada)
        assert sum(frame["type"] == "identity" for frame in received) == len(names)
        lists = [frame for frame in received if frame["type"] == "presence"]
        assert 1 <= len(lists) <= 10
        assert sum("identity" in agent for agent in lists[-1]["agents"]) == len(names)
        assert len(running.names()) == len(names) + 1
        assert not [message for _, message, _ in running.host.lines if message.startswith("Cut off")]


@pytest.mark.perf
@pytest.mark.parametrize("unit", ["*a*\n", "word ", "**a", "\U0001f1e6"])
async def test_one_chat_freezes_neither_the_room_nor_its_terminal(tmp_path: Path, unit: str) -> None:
    shown = tmp_path / "shown"
    clock = FakeClock()
    with shown.open("w", encoding="utf-8") as file:
        out = Outlet(file)
        console = HostConsole(LineScreen(out, until_eof=False), Roster(), clock)
        server = SpaceServer(None, console, clock=clock)
        assert isinstance(await server.start(0), Ok)
        try:
            async with connect(f"ws://127.0.0.1:{server.port}", proxy=None) as socket:
                eve = RawClient(socket)
                await eve.join("eve")
                began = time.process_time()
                await eve.send({"type": "chat", "content": (unit * 50_000)[:50_000]})
                assert (await eve.until("chat"))[-1]["content"].startswith(unit)
                await until(lambda: "more was said" in shown.read_text("utf-8"))
                spent = time.process_time() - began
        finally:
            await server.stop()
        out.finish(HANG_S)
    assert spent < 1.0
    assert len(shown.read_text("utf-8")) < 30_000


EVIL = "192.0.2.66"
_LETTERS = "abcdefghjk"
_TARGET = "T" + "t" * 4_000

Frame = dict[str, Any]


def named(number: int) -> str:
    """Return a name that looks like no other number's."""
    return "m" + "".join(_LETTERS[number // place % 10] for place in (1000, 100, 10, 1))


def typing(_member: int, _turn: int) -> Frame:
    return {"type": "typing"}


def result(member: int, _turn: int) -> Frame:
    """Return a claim for the first member, renewed each time, and the same result on its target for all others."""
    if member == 0:
        return {"type": "claim", "action": "a", "target": _TARGET}
    more = {"link": "https://x.example/" + "l" * 1000, "error": "e" * 1000}
    return {"type": "action_result", "action": "a", "target": _TARGET, "success": True, **more}


def identity(_member: int, turn: int) -> Frame:
    return {"type": "identity", "summary": {"voice": f"{turn} " + "v" * 16_000}}


def chat(_member: int, turn: int) -> Frame:
    return {"type": "chat", "content": f"{turn} " + "w" * 90_000}


@pytest.mark.parametrize(
    ("members", "says", "every"),
    [(70, result, 1), (127, typing, 1), (20, identity, 1), (127, identity, 4), (127, chat, 12)],
)
@pytest.mark.slow
async def test_no_address_tells_a_member_more_than_it_endures(
    members: int, says: Callable[[int, int], Frame], every: int
) -> None:
    driver, inbound = RoomDriver(), InboundLimiter()
    rowan = driver.join("rowan", resume="")
    crowd = [driver.join(named(number), address=EVIL) for number in range(members)]
    for turn in range(4 * 65):
        for number, number in enumerate(crowd if turn % every == 0 else ()):
            driver.do(driver.room.received(number, json.dumps(says(number, turn))))
        now = driver.clock.monotonic()
        assert not any(inbound.count_frame(len(text), now) for text in driver.texts[rowan]), f"{turn / 4} s"
        driver.texts.clear()
        await driver.after(0.25)
        for number in (rowan, *crowd):
            driver.do(driver.room.ponged(number))
    assert rowan not in driver.ended
    driver.texts.clear()
    driver.send(rowan, {"type": "chat", "content": "I am still here"})
    assert driver.arrived(rowan)[-1]["content"] == "I am still here"


@pytest.mark.slow
async def test_whoever_tells_too_much_is_told_so() -> None:
    driver = RoomDriver()
    driver.join("rowan")
    crowd = [driver.join(named(number), address=EVIL) for number in range(127)]
    for _ in range(40):
        for number in crowd:
            driver.do(driver.room.received(number, json.dumps({"type": "typing"})))
        await driver.after(0.3)
    for number in crowd:
        assert any(frame.get("message", "").startswith("Rate limited") for frame in driver.arrived(number))


async def test_a_full_home_behind_one_address_talks_and_works_unhindered() -> None:
    driver = RoomDriver()
    home = [driver.join(named(number)) for number in range(20)]
    other = driver.join("rowan", address=EVIL)
    driver.forget()
    for turn in range(20):
        for number in home:
            driver.do(driver.room.received(number, json.dumps({"type": "typing"})))
            driver.do(driver.room.received(number, json.dumps({"type": "chat", "content": f"{turn} " + "w" * 1_000})))
            driver.do(driver.room.received(number, json.dumps({"type": "state", "state": "acting"})))
        await driver.after(3)
    assert driver.types(other).count("chat") == 20 * 20
    assert "error" not in {kind for number in home for kind in driver.types(number)}


@pytest.mark.slow
async def test_of_chats_each_address_has_its_budget_under_however_many_names() -> None:
    driver = RoomDriver()
    ada = driver.join("ada")
    crowd: list[int] = []
    for number in range(160):
        crowd.append(driver.join(named(number), address=EVIL))
        driver.send(crowd[-1], {"type": "chat", "content": f"hi {number}"})
        if len(crowd) >= 127:
            driver.do(driver.room.closed(crowd.pop(0)))
        await driver.after(0.05)
    assert 60 <= driver.types(ada).count("chat") <= 20 + 160 * 0.05 * 20 / 3
    driver.forget()
    driver.send(ada, {"type": "chat", "content": "and I?"})
    assert driver.types(ada) == ["chat"]
