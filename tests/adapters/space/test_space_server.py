"""Tests of a room's server with real sockets: no kind of client harms another.

Our members in a room of our own server: talk, claims, a wrong token, a slow closing, and a server that is killed.
Strangers can do nothing to a room that its members notice. Tests of what a newcomer is told of the past, and how much
of it. What a room remembers of addresses is bounded, and a crowd of others does not give one of them a new
allowance.
"""

import asyncio
import contextlib
import json
import socket
import struct
from datetime import UTC, datetime
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode

from adapters.space.client import SpaceClient
from adapters.space.room_allowance import ADDRESS_BYTES, REMEMBERED_S, Addresses, Replay, dynamic_history_limit
from adapters.space.server import MAX_ATTEMPTS, ConnectionLimiter, SpaceServer
from adapters.space.types import ActionDone, EntryType, Joined, Left, LogEntry, PresenceList, Said, SpaceEvent
from common.clock import Clock, FakeClock
from common.result import Err, Ok
from tests.adapters.space.running_member import Member, at, running_client
from tests.adapters.space.running_room import (
    JOIN,
    RawClient,
    RecordingHost,
    RunningServer,
    running_server,
    silent_client,
)
from tests.children import child_of
from tests.patience import HANG_S, until


async def test_guests_join_talk_and_leave_in_the_order_of_the_wire(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running, running.raw_client("any/path?x=1") as ada:
        told = await ada.join("ada")
        assert [frame["type"] for frame in told] == ["join", "presence", "history_response"]
        async with running.raw_client() as bob:
            await bob.join("bob")
            await bob.send(b'{"type":"chat","content":"in bytes"}')
            assert (await bob.next())["content"] == "in bytes"
        told = await ada.until("leave")
        assert [frame["type"] for frame in told if frame["type"] != "presence"] == ["join", "chat", "leave"]
        running.server.broadcast_from_host("hi Ada")
        assert (await ada.until("chat"))[-1]["addressed"] == ["ada"]
        assert running.names() == ["ada"]
        kinds = [type(event) for event in running.host.seen if not isinstance(event, PresenceList)]
        assert kinds == [Joined, Joined, Said, Left, Said]
        assert [entry.type for entry in running.log.get_recent_history()] == ["join", "join", "chat", "leave", "chat"]


async def test_a_view_that_fails_or_answers_back_harms_nobody(tmp_path: Path) -> None:
    class Talkative(RecordingHost):
        server: SpaceServer

        def happened(self, event: SpaceEvent) -> None:
            if isinstance(event, Said):
                raise TypeError("the view broke")
            if isinstance(event, Joined):
                self.server.broadcast_from_host(f"welcome {event.name}")

    host = Talkative()
    server = SpaceServer(None, host)
    host.server = server
    await server.start(0)
    async with connect(f"ws://127.0.0.1:{server.port}", proxy=None) as sock:
        ada = RawClient(sock)
        assert [frame["type"] for frame in await ada.join("ada")] == ["join", "presence", "history_response"]
        assert (await ada.next())["content"] == "welcome ada"
    await server.stop()
    assert [line[1] for line in host.lines] == ["The host's view failed"]


async def test_a_guest_that_does_not_pong_is_gone_and_one_that_does_stays(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_server(tmp_path, clock=clock) as running, running.raw_client() as ada:
        reader, writer = await silent_client(running, "deaf")
        await ada.join("ada")
        assert set(running.names()) == {"deaf", "ada"}
        await clock.advance(30)
        running.server.broadcast_from_host("do you hear me?")
        await ada.until("chat")  # the ping came before this, so Ada's pong is sent before her message
        await ada.send({"type": "chat", "content": "I do."})
        await ada.until("chat")  # the room has her message now, and so her pong
        await clock.advance(30)
        await until(lambda: running.names() == ["ada"])
        assert (await ada.until("leave"))[-1]["name"] == "deaf"
        writer.close()
        while await reader.read(4096):
            pass


async def test_one_that_does_not_read_delays_nobody_and_is_cut_off(tmp_path: Path) -> None:
    async with running_server(tmp_path, max_waiting_bytes=256 * 1024) as running, running.raw_client() as ada:
        _, writer = await silent_client(running, "deaf")
        await ada.join("ada")
        for number in range(200):
            running.server.broadcast_from_host(f"{number} " + "w" * 60_000)
            assert (await ada.until("chat"))[-1]["content"].startswith(f"{number} ")
            if running.names() == ["ada"]:
                break
        assert running.names() == ["ada"]
        assert ("warn", "Cut off: it does not read", "127.0.0.1") in running.host.lines
        writer.close()


async def test_the_end_is_announced_and_nobody_comes_in_any_more(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running, running.raw_client() as ada, running.raw_client() as late:
        await ada.join("ada")
        running.server.broadcast_shutdown()
        assert (await ada.next())["type"] == "shutdown"
        await late.send({**JOIN, "name": "late"})
        assert await late.closed() == (1001, "Server shutting down")
        await ada.send({"type": "chat", "content": "last words"})
        assert (await ada.next())["content"] == "last words"
        await running.server.stop()
        assert await ada.closed() == (1001, "Server shutting down")
        assert [entry.type for entry in running.log.get_recent_history()] == ["join", "chat", "leave"]


async def test_a_stop_waits_for_nobody_who_does_not_answer(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        _, writer = await silent_client(running, "deaf")
        silent = socket.create_connection(("127.0.0.1", running.server.port))
        await running.server.stop()
        silent.close()
        writer.close()


async def test_a_port_that_is_taken_is_an_answer_not_an_exception(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        other = SpaceServer()
        result = await other.start(running.server.port)
        assert isinstance(result, Err)
        assert result.kind == "conflict"
        assert str(running.server.port) in result.error


@pytest.mark.parametrize("bind", ["203.0.113.77", "2001:db8::77"])
async def test_an_address_that_this_machine_has_not_is_named(bind: str) -> None:
    started = await SpaceServer().start(0, ("127.0.0.1", bind))
    assert started == Err(f"{bind} is no address of this machine", "not_found")


async def test_several_addresses_share_one_port(tmp_path: Path) -> None:
    server, other = SpaceServer(), SpaceServer()
    assert await server.start(0, ("127.0.0.1", "127.0.0.2")) == Ok(server.port)
    for address in ("127.0.0.1", "127.0.0.2"):
        assert isinstance(await other.start(server.port, (address,)), Err)
    await server.stop()
    assert server.port == 0


@pytest.mark.parametrize(
    ("origin", "host", "welcome"),
    [
        (None, "127.0.0.1", True),
        ("http://127.0.0.1:8000", "127.0.0.1", False),
        ("https://page.example", "127.0.0.1", False),
        ("http://page.example.evil.example", "127.0.0.1", False),
        ("http://evil.example", "evil.example", False),
        ("null", "127.0.0.1", False),
        ("http://page.example", "127.0.0.1", True),
    ],
    ids=["no-browser", "other-port", "other-scheme", "foreign", "rebound-name", "null", "allowed"],
)
async def test_web_pages_are_refused_but_those_of_an_origin_that_the_host_named(
    tmp_path: Path, origin: str | None, host: str, *, welcome: bool
) -> None:
    async with running_server(tmp_path, origins=["http://page.example"]) as running:
        headers = [("Host", f"{host}:{running.server.port}"), *([("Origin", origin)] if origin else [])]
        status = await knock(running.server.port, headers)
        assert status == (101 if welcome else 403)


async def knock(port: int, headers: list[tuple[str, str]], path: str = "/") -> int:
    """Request an upgrade; return the status of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    writer.write(
        f"GET {path} HTTP/1.1\r\n{lines}Upgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    status = int((await reader.readline()).split()[1])
    writer.close()
    await writer.wait_closed()
    return status


async def test_without_the_token_nobody_gets_further_than_the_door(tmp_path: Path) -> None:
    async with running_server(tmp_path, token="sésame") as running:
        for query in ("", "?token=", "?token=sesame", "?token=s%C3%A9sam", "?token=s%C3%A9same&token=x"):
            with pytest.raises(InvalidStatus) as refused:
                async with running.raw_client(query):
                    pass
            assert refused.value.response.status_code == 401
        async with running.raw_client("?token=s%C3%A9same") as ada:
            await ada.join("ada")
        assert not any("same" in detail for _, _, detail in running.host.lines)


async def test_a_room_holds_so_many_and_one_address_its_share(tmp_path: Path) -> None:
    async with running_server(tmp_path, max_connections=3, max_per_address=2) as running:
        host = [("Host", f"127.0.0.1:{running.server.port}")]
        async with running.raw_client(), running.raw_client():
            assert await knock(running.server.port, host) == 429
        await until(lambda: not running.server.waiting)
        async with running.raw_client():
            pass
    async with running_server(tmp_path / "small", max_connections=1) as running, running.raw_client():
        assert await knock(running.server.port, [("Host", f"127.0.0.1:{running.server.port}")]) == 503


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
        await until(lambda: ada.client.view.claims.lost or bob.client.view.claims.lost)
        loser, holder = (ada, bob) if ada.client.view.claims.lost else (bob, ada)
        assert loser.client.view.claims.lost == {("create_issue", "o/r")}
        assert loser.client.has_active_claim("create_issue", "o/r") == holder.client.name
        assert holder.client.view.claims.lost == set()
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
                assert not ada.client.inbox.fresh_room
                again.stdin.write(b"is everybody back?\n")
                await until(lambda: "is everybody back?" in _contents(ada.client))
                assert _contents(ada.client) == ["before", "is everybody back?"]


async def still_works(running: RunningServer) -> None:
    """Check that a newcomer can join and that its message arrives."""
    async with running.raw_client() as well:
        await well.join("well-behaved")
        await well.send({"type": "chat", "content": "all fine"})
        assert (await well.until("chat"))[-1]["content"] == "all fine"


async def test_a_frame_of_64_megabytes_is_refused_by_its_head(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        reader, writer = await silent_client(running, "huge")
        writer.write(b"\x81" + bytes([0x80 | 127]) + struct.pack("!Q", 64 << 20) + b"\0\0\0\0")
        data = await asyncio.wait_for(reader.read(), HANG_S)
        assert struct.pack("!H", 1009) in data
        writer.close()
        await until(lambda: running.names() == [])
        await still_works(running)


async def test_a_message_in_fragments_is_measured_as_one(tmp_path: Path) -> None:
    async with running_server(tmp_path) as running:
        reader, writer = await silent_client(running, "pieces")
        piece = b"w" * 300_000
        writer.write(Frame(Opcode.TEXT, piece, fin=False).serialize(mask=True))
        for _ in range(4):
            writer.write(Frame(Opcode.CONT, piece, fin=False).serialize(mask=True))
        assert struct.pack("!H", 1009) in await asyncio.wait_for(reader.read(), HANG_S)
        writer.close()
        await still_works(running)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (Frame(Opcode.TEXT, b"\xff\xfe{}").serialize(mask=True), 1007),
        (Frame(Opcode.TEXT, b"{}").serialize(mask=False), 1002),
        (b"\xff\xff\xff\xff\xff\xff", 1002),
    ],
    ids=["bad-utf8", "unmasked", "noise"],
)
async def test_what_is_no_websocket_ends_this_connection_only(tmp_path: Path, raw: bytes, code: int) -> None:
    async with running_server(tmp_path) as running:
        reader, writer = await silent_client(running, "odd")
        writer.write(raw)
        assert struct.pack("!H", code) in await asyncio.wait_for(reader.read(), HANG_S)
        writer.close()
        await until(lambda: running.names() == [])
        await still_works(running)


async def test_a_slow_handshake_is_hung_up_on_and_delays_nobody(tmp_path: Path) -> None:
    async with running_server(tmp_path, open_timeout_s=2.0) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: ")
        await still_works(running)
        assert await asyncio.wait_for(reader.read(), HANG_S) == b""
        writer.close()


async def test_pings_from_one_that_does_not_read_are_not_answered_without_end(tmp_path: Path) -> None:
    async with running_server(tmp_path, max_waiting_bytes=64 * 1024) as running:
        _, writer = await silent_client(running, "pinger")
        ping = Frame(Opcode.PING, b"p" * 125).serialize(mask=True) * 1000
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(HANG_S):
                while True:
                    writer.write(ping)
                    await writer.drain()
        await until(lambda: running.names() == [])
        await still_works(running)
        writer.close()


AT = "2026-01-05T12:00:00.000Z"


def entries(kind: EntryType, count: int, content: str = "") -> list[LogEntry]:
    return [LogEntry(AT, "ada", "ada-1", kind, content or f"{kind} {number}") for number in range(count)]


def replayed(past: list[LogEntry], limit: int) -> list[dict[str, str]]:
    return [json.loads(text) for text in Replay(past).select(limit)]


def test_a_newcomer_hears_words_and_results_before_the_noise_of_states() -> None:
    told = replayed([*entries("chat", 100), *entries("action_result", 20), *entries("state", 900)], 200)
    assert [entry["content"] for entry in told[:2]] == ["chat 0", "chat 1"]
    assert len(told) == 200
    assert sum(entry["type"] == "state" for entry in told) == 80
    assert told[-1]["content"] == "state 899"


def test_the_newest_entry_is_always_replayed() -> None:
    told = replayed([*entries("chat", 500), *entries("join", 1)], 200)
    assert [entry["content"] for entry in told[-2:]] == ["chat 499", "join 0"]
    assert len(told) == 200


def test_a_replay_stays_below_a_mebibyte_and_drops_the_oldest() -> None:
    texts = Replay([*entries("chat", 20, "é" * 50_000), *entries("chat", 3)]).select(200)
    assert sum(len(text.encode()) + 1 for text in texts) < 1_048_576 - 60
    assert json.loads(texts[-1])["content"] == "chat 2"
    assert 10 <= len(texts) <= 13


@pytest.mark.parametrize(
    ("agents", "limit"),
    [(0, 200), (1, 200), (2, 200), (3, 250), (6, 400), (10, 600), (17, 950), (18, 1000), (99, 1000)],
)
def test_how_much_is_replayed_grows_with_the_room(agents: int, limit: int) -> None:
    assert dynamic_history_limit(agents) == limit


NOISY = "192.0.2.1"
MANY = 5_000


def _crowd(addresses: Addresses, clock: FakeClock) -> None:
    for number in range(MANY):
        address = f"2001:db8::{number:x}"
        addresses.release(address, addresses.acquire(address, clock.monotonic()), clock.monotonic())


def test_an_address_that_stays_connected_keeps_its_spent_budget_however_many_others_come_and_go() -> None:
    clock = FakeClock()
    addresses = Addresses(clock)
    addresses.acquire(NOISY, clock.monotonic())
    assert addresses.allows_frame(NOISY, ADDRESS_BYTES, clock.monotonic())
    _crowd(addresses, clock)
    assert not addresses.allows_frame(NOISY, 1, clock.monotonic())
    assert addresses.share_of(NOISY) == 1


async def test_an_address_that_left_gets_its_old_allowance_back_within_a_minute() -> None:
    clock = FakeClock()
    addresses = Addresses(clock)
    allowance = addresses.acquire(NOISY, clock.monotonic())
    addresses.release(NOISY, allowance, clock.monotonic())
    await clock.advance(REMEMBERED_S - 1)
    assert addresses.acquire(NOISY, clock.monotonic()) is allowance
    addresses.release(NOISY, allowance, clock.monotonic())
    await clock.advance(REMEMBERED_S)
    assert addresses.acquire(NOISY, clock.monotonic()) is not allowance


def test_an_address_that_connects_too_often_is_refused_also_after_thousands_of_others() -> None:
    limiter = ConnectionLimiter(most=10, most_per_address=10)
    assert not any(limiter.refusal(NOISY, 0.0) for _ in range(MAX_ATTEMPTS))
    for number in range(MANY):
        assert limiter.refusal(f"2001:db8::{number:x}", 0.0) is None
        assert limiter.refusal(NOISY, 0.0) is not None
