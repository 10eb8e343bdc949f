"""A room that sends exactly what a test tells it: what no sound server sends, and what the original server sent."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.patience import until

AT = "2026-01-05T12:00:00.000Z"

Frame = dict[str, Any]
Script = Callable[["Visit"], Awaitable[None]]


class Visit:
    """One connection of a member."""

    def __init__(self, socket: ServerConnection, number: int) -> None:
        self.socket = socket
        self.number = number
        self.said: list[Frame] = []
        self.me: Frame = {}

    async def tell(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))

    async def receive(self, kind: str | None = None) -> Frame:
        """Return the next frame, or the next of the type `kind`."""
        while True:
            frame: Frame = json.loads(await self.socket.recv())
            self.said.append(frame)
            if kind in (None, frame["type"]):
                return frame

    async def welcome(self, *, entries: list[Frame] | None = None, agents: list[Frame] | None = None) -> None:
        """Read the member's join and answer as the original server did: with join, presence, record, presence."""
        self.me = await self.receive("join")
        me = {key: self.me[key] for key in ("name", "id", "version")}
        present = [*(agents or []), present_as(**me)]
        await self.tell(type="join", **me)
        await self.tell(type="presence", agents=present)
        await self.tell(type="history_response", entries=entries or [])
        await self.tell(type="presence", agents=present)

    async def echo(self, chat: Frame, *, at: str = AT) -> None:
        await self.tell(type="chat", name=self.me["name"], id=self.me["id"], content=chat["content"], timestamp=at)

    async def chat(self, name: str, content: str, *, at: str = AT, **more: Any) -> None:
        await self.tell(type="chat", name=name, id=f"{name}-1", content=content, timestamp=at, **more)

    async def until_gone(self) -> None:
        """Read frames and send nothing until the member is gone."""
        try:
            while True:
                await self.receive()
        except ConnectionClosed:
            return


def present_as(name: str, id: str = "", version: str = "1.0.0", **more: Any) -> Frame:  # noqa: A002 - as on the wire
    return {"name": name, "id": id or f"{name}-1", "version": version, "joinedAt": AT, "lastSeen": AT, **more}


def entry(kind: str, name: str, content: str = "", *, at: str = AT) -> Frame:
    return {"timestamp": at, "agentName": name, "agentId": f"{name}-1", "type": kind, "content": content}


class ScriptedRoom:
    """Plays one script per connection; all connections after the last script repeat it."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts
        self.visits: list[Visit] = []
        self.failures: list[BaseException] = []
        self.live = 0
        self.most_live = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def visited(self, times: int) -> None:
        """Wait until `times` connections have been made."""
        await until(lambda: len(self.visits) >= times)

    async def said(self, frames: int) -> None:
        """Wait until the first visitor has sent `frames` frames, including its join."""
        await until(lambda: self.visits and len(self.visits[0].said) >= frames)

    async def attend(self, socket: ServerConnection) -> None:
        visit = Visit(socket, len(self.visits))
        self.visits.append(visit)
        self.live += 1
        self.most_live = max(self.live, self.most_live)
        try:
            await self._scripts[min(visit.number, len(self._scripts) - 1)](visit)
        except ConnectionClosed:
            return
        except AssertionError as error:
            self.failures.append(error)
        finally:
            self.live -= 1

    @asynccontextmanager
    async def open(self, port: int = 0) -> AsyncIterator[Server]:
        async with serve(self.attend, "127.0.0.1", port, compression=None, close_timeout=0.2) as server:
            self.port = next(iter(server.sockets)).getsockname()[1]
            yield server
        assert not self.failures, self.failures


async def stay(visit: Visit) -> None:
    """Behave as a sound room: welcome the member, and stay until it leaves."""
    await visit.welcome()
    await visit.until_gone()
