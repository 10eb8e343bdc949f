"""A room's server with real sockets: raw_clients of every kind, and none of them harms another."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from adapters.space.server import SpaceServer
from adapters.space.types import Joined, Left, PresenceList, Said, SpaceEvent
from common.clock import FakeClock
from common.result import Err, Ok
from tests.adapters.space.running_room import JOIN, RawClient, RecordingHost, running_server, silent_client
from tests.patience import until


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
        await ada.until("chat")  # the ping came before it, so her answer to that
        await ada.send({"type": "chat", "content": "I do."})
        await ada.until("chat")  # comes before this
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
    """The status that an upgrade request gets."""
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
