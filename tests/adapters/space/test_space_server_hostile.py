"""What strangers may do to a room: nothing that its members notice."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from pathlib import Path

import pytest
from websockets.frames import Frame, Opcode

from tests.adapters.space.running_room import RunningServer, running_server, silent_client
from tests.patience import HANG_S, until


async def still_works(running: RunningServer) -> None:
    """A newcomer joins and is heard."""
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
