"""The town's agent space: a room on loopback where the residents meet, with the visitor as its host.

Its record lies in the folder that is handed in, and goes with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.clock import Clock
from common.errors import Fatal
from common.result import Err
from town.page.room import Known, RoomView


@dataclass(frozen=True, slots=True)
class TownRoom:
    """The room, who looks on, and where its members join."""

    server: SpaceServer
    view: RoomView
    url: str


@asynccontextmanager
async def open_room(folder: Path, clock: Clock, known: Mapping[str, Known], host: Known) -> AsyncIterator[TownRoom]:
    """Open the room on a free port and close it again.

    Args:
        folder: for its record; made if need be.
        clock: its time.
        known: residents by their name in the room.
        host: the visitor.

    Raises:
        Fatal: nothing can listen on loopback.

    """
    view = RoomView(clock, known, host)
    server = SpaceServer(ChatLog(folder), view, clock=clock)
    started = await server.start(0)
    if isinstance(started, Err):
        raise Fatal(started.error, remedy="Look what keeps programs from listening on 127.0.0.1.")
    try:
        yield TownRoom(server, view, f"ws://127.0.0.1:{started.data}")
    finally:
        server.broadcast_shutdown()
        await server.stop()
