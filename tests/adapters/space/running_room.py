"""Helpers that run a room: its protocol core with a fake clock, or its server with real sockets."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from adapters.space.chatlog import ChatLog
from adapters.space.room import Room
from adapters.space.room_state import Abort, Close, Deliver, Effect, Log, NotifyHost, Ping, RecordEffect
from adapters.space.server import LogLevel, SpaceServer
from adapters.space.types import LogEntry, SpaceEvent
from common.clock import FakeClock
from common.result import Ok
from tests.patience import HANG_S

Told = dict[str, Any]
JOIN = {"type": "join", "name": "ada", "id": "ada-1", "version": "1"}


class RoomDriver:
    """Drives a room's protocol core in memory; keeps what each connection was sent, and how it ended."""

    def __init__(self, **more: Any) -> None:
        self.clock = FakeClock()
        self.room = Room(self.clock, **more)
        self.texts: dict[int, list[str]] = defaultdict(list)
        self.ended: dict[int, tuple[int, str]] = {}
        self.pinged: list[int] = []
        self.recorded: list[LogEntry] = []
        self.seen: list[SpaceEvent] = []
        self.logged: list[Log] = []
        self._count = 0

    def open(self, address: str = "192.0.2.1") -> int:
        self._count += 1
        self.do(self.room.opened(self._count, address))
        return self._count

    def send(self, number: int, frame: Told | str | bytes) -> list[Told]:
        """Send a frame; return what this connection was sent in answer."""
        before = len(self.texts[number])
        self.do(self.room.received(number, json.dumps(frame) if isinstance(frame, dict) else frame))
        return self.arrived(number)[before:]

    def join(self, name: str, agent_id: str = "", *, address: str = "192.0.2.1", **more: Any) -> int:
        """Open a connection and join; return its number."""
        number = self.open(address)
        self.send(number, {"type": "join", "name": name, "id": agent_id or f"{name}-1", "version": "1", **more})
        return number

    def arrived(self, number: int) -> list[Told]:
        return [json.loads(text) for text in self.texts[number]]

    def types(self, number: int) -> list[str]:
        return [frame["type"] for frame in self.arrived(number)]

    def forget(self) -> None:
        """Clear the frames, record entries and events that were collected so far."""
        self.texts.clear()
        self.recorded.clear()
        self.seen.clear()

    async def after(self, seconds: float) -> None:
        """Advance the clock, with a tick every 250 ms."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            await self.clock.advance(min(0.25, end - self.clock.monotonic()))
            self.do(self.room.tick())

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Deliver():
                    for number in effect.to:
                        self.texts[number].append(effect.text)
                case Close():
                    self.ended[effect.connection] = (effect.code, effect.reason)
                case Abort():
                    self.ended[effect.connection] = (1006, "")
                case Ping():
                    self.pinged.append(effect.connection)
                case RecordEffect():
                    self.recorded.append(effect.entry)
                case NotifyHost():
                    self.seen.append(effect.event)
                case Log():
                    self.logged.append(effect)


class RecordingHost:
    """A host that keeps all events and log lines."""

    def __init__(self) -> None:
        self.seen: list[SpaceEvent] = []
        self.lines: list[tuple[LogLevel, str, str]] = []

    def happened(self, event: SpaceEvent) -> None:
        self.seen.append(event)

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        self.lines.append((level, message, detail))


class RawClient:
    """A raw WebSocket connection to a server."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: Told | str | bytes) -> None:
        await self.socket.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    async def join(self, name: str, agent_id: str = "", **more: Any) -> list[Told]:
        """Join; return the frames up to the record."""
        await self.send({"type": "join", "name": name, "id": agent_id or f"{name}-1", "version": "1", **more})
        return await self.until("history_response")

    async def next(self) -> Told:
        async with asyncio.timeout(HANG_S):
            told: Told = json.loads(await self.socket.recv())
            return told

    async def until(self, kind: str) -> list[Told]:
        """Return all frames up to and including the next one of the type `kind`."""
        frames = [await self.next()]
        while frames[-1]["type"] != kind:
            frames.append(await self.next())
        return frames

    async def closed(self) -> tuple[int | None, str | None]:
        """Wait until the connection is closed; return the close code and the reason."""
        async with asyncio.timeout(HANG_S):
            await self.socket.wait_closed()
        return self.socket.close_code, self.socket.close_reason


class RunningServer:
    """A running server, with its host and its record."""

    def __init__(self, server: SpaceServer, host: RecordingHost, log: ChatLog) -> None:
        self.server = server
        self.host = host
        self.log = log

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.server.port}/"

    @asynccontextmanager
    async def raw_client(self, query: str = "", **more: Any) -> AsyncIterator[RawClient]:
        async with connect(self.url + query, proxy=None, **more) as socket:
            yield RawClient(socket)

    def names(self) -> Sequence[str]:
        return [agent.name for agent in self.server.get_connected_agents()]


@asynccontextmanager
async def running_server(folder: Path, host: RecordingHost | None = None, **more: Any) -> AsyncIterator[RunningServer]:
    host, log = host or RecordingHost(), ChatLog(folder)
    server = SpaceServer(log, host, **more)
    assert isinstance(await server.start(0), Ok)
    try:
        yield RunningServer(server, host, log)
    finally:
        await server.stop()


async def silent_client(running: RunningServer, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a raw connection that joins by hand and then answers nothing; return its streams."""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.server.port, limit=1 << 16)
    writer.write(
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{running.server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    writer.write(Frame(Opcode.TEXT, json.dumps({**JOIN, "name": name}).encode()).serialize(mask=True))
    await reader.readuntil(b"history_response")
    return reader, writer
