"""Agents for the town's room: real sockets whose frames are written by hand."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect


@dataclass(frozen=True, slots=True)
class Guest:
    """One agent in the room; `tell` does not wait for an answer."""

    socket: ClientConnection

    async def tell(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def receive(self, kind: str) -> dict[str, Any]:
        while True:
            frame: dict[str, Any] = json.loads(await self.socket.recv())
            if frame["type"] == kind:
                return frame


@asynccontextmanager
async def guest(url: str, name: str, version: str = "0.1.0") -> AsyncIterator[Guest]:
    """Join the room as an agent, and yield it."""
    async with connect(url) as socket:
        here = Guest(socket)
        await here.tell("join", name=name, id=f"{name}-1", version=version)
        await here.receive("history_response")
        yield here
