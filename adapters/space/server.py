"""The server of a room: sockets and the record around the rules in `room`.

One loop, no locks: whatever comes in is handed to the rules, and what they want done is carried out in order. A frame
for all is made once. Nobody waits for anybody: not for a peer that does not read, not for a view that fails. After a
kill the record is whole, and the next start replays it; members come back by themselves.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import os
from collections import deque
from collections.abc import Awaitable, Collection, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from typing import cast

from websockets.asyncio.server import Server, serve
from websockets.asyncio.server import ServerConnection as WebSocket
from websockets.http11 import Request, Response

from adapters.space.chatlog import ChatLog
from adapters.space.connection_limiter import ConnectionLimiter, RepeatedWarnings, refused_origin, refused_token
from adapters.space.hosting import LogLevel, RoomHost, SilentHost
from adapters.space.room import Room
from adapters.space.room_effects import Abort, Close, Deliver, Effect, Log, Ping, Record, Tell
from adapters.space.room_replay import Replay
from adapters.space.server_connection import RoomSocket, ServerConnection, frame_bytes
from adapters.space.types import HOST, Claimed, Event, Presence
from common.clock import Clock, SystemClock
from common.constants import SPACE_DEFAULT_PORT, SPACE_MAX_PAYLOAD_BYTES
from common.result import ApiResult, Err, Ok

MAX_CONNECTIONS = 256
MAX_CONNECTIONS_PER_ADDRESS = 128
MAX_WAITING_BYTES = 4 * 1024 * 1024
OPEN_TIMEOUT_S = 5.0
_CLOSE_TIMEOUT_S = 2.0
_TICK_S = 0.25
_READ_AHEAD = 8
_REMEMBERED_ENTRIES = 10_000


class SpaceServer:
    """A room that can be joined.

    Args:
        persistence: the record; None keeps none.
        host: who looks on.
        host_name: under which the host speaks.
        clock: time.
        token: what a URL must carry as `?token=`; "" asks for none.
        origins: web pages that may connect, each exactly as its browser names it, such as `http://127.0.0.1:8000`.
            A request without an `Origin` comes from no browser, and may.
        max_connections: in all.
        max_per_address: from one address.
        max_waiting_bytes: how much may wait for a member that does not read before it is cut off.
        open_timeout_s: how long a stranger may take for its request.

    """

    def __init__(
        self,
        persistence: ChatLog | None = None,
        host: RoomHost | None = None,
        *,
        host_name: str = HOST,
        clock: Clock | None = None,
        token: str = "",
        origins: Collection[str] = (),
        max_connections: int = MAX_CONNECTIONS,
        max_per_address: int = MAX_CONNECTIONS_PER_ADDRESS,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
        open_timeout_s: float = OPEN_TIMEOUT_S,
    ) -> None:
        self._log = persistence
        self._host = host or SilentHost()
        self._clock = clock or SystemClock()
        self._token = token
        self._origins = frozenset(origins)
        self._limiter = ConnectionLimiter(most=max_connections, most_per_address=max_per_address)
        self._repeated = RepeatedWarnings()
        self._open_timeout_s = open_timeout_s
        self.most_waiting = max_waiting_bytes
        self._room = Room(self._clock, host_name=host_name)
        self._servers: list[Server] = []
        self._sockets: set[RoomSocket] = set()
        self._connections: dict[int, ServerConnection] = {}
        self._unflushed: set[ServerConnection] = set()
        self._untold: deque[Event] = deque()
        self._turn_ending = False
        self._numbers = itertools.count(1)
        self._to_do: deque[Effect] = deque()
        self._doing = False
        self._ticking: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """Where it listens; 0 before the start."""
        sockets = list(self._servers[0].sockets) if self._servers else []
        return int(sockets[0].getsockname()[1]) if sockets else 0

    @property
    def host_id(self) -> str:
        """The id under which the host speaks."""
        return self._room.host_id

    @property
    def claims(self) -> tuple[Claimed, ...]:
        """What is being worked at."""
        return self._room.claims

    @property
    def waiting(self) -> tuple[int, ...]:
        """Bytes that wait for each connection to read them, fewest first."""
        return tuple(sorted(connection.waiting for connection in self._connections.values()))

    def get_connected_agents(self) -> tuple[Presence, ...]:
        """Who is in the room, in the order of joining."""
        return self._room.agents

    async def start(self, port: int = SPACE_DEFAULT_PORT, binds: Sequence[str] = ("127.0.0.1",)) -> ApiResult[int]:
        """Listen on one port (0: any free one) of each address; answers with the port.

        `conflict`: it is in use. `not_found`: this machine has no such address. `invalid`: it may not listen there.
        """
        if self._log is not None:
            self._room.remember(*await asyncio.to_thread(_past, self._log))
        for bind in binds:
            wanted = self.port or port
            try:
                self._servers.append(await self._listen(bind, wanted))
            except OSError as error:
                await self.stop()
                return _no_ear(error, bind, wanted)
        self._ticking = asyncio.create_task(self._tick_on())
        return Ok(self.port)

    async def stop(self) -> None:
        """Say good-bye to all, wait a moment for their answers, then cut them off."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.wait([self._ticking])
            self._ticking = None
        self._do(self._room.finish())
        self._end_turn()
        servers, self._servers = self._servers, []
        for server in servers:
            server.close(close_connections=False)
        if servers and not await _within(_CLOSE_TIMEOUT_S, (server.wait_closed() for server in servers)):
            for socket in list(self._sockets):
                socket.transport.abort()
            await _within(_CLOSE_TIMEOUT_S, (server.wait_closed() for server in servers))
        if self._log is not None:
            self._log.close()

    def broadcast_from_host(self, text: str) -> None:
        """The host says something."""
        self._do(self._room.say(text))

    def broadcast_shutdown(self) -> None:
        """Tell all that the room will close; from now on nobody comes in. `stop` must follow."""
        self._do(self._room.drain())

    def socket_opened(self, connection: RoomSocket) -> None:
        """A socket was accepted; see `SocketObserver`."""
        self._sockets.add(connection)
        self._limiter.enter(connection.address)
        if self._limiter.is_overloaded:
            connection.transport.abort()

    def socket_closed(self, connection: RoomSocket) -> None:
        """A socket is gone; see `SocketObserver`."""
        self._sockets.discard(connection)
        self._limiter.leave(connection.address)

    async def _listen(self, bind: str, port: int) -> Server:
        return await serve(
            self._serve,
            bind,
            port,
            compression=None,
            process_request=self._admit,
            server_header=None,
            open_timeout=self._open_timeout_s,
            ping_interval=None,
            close_timeout=_CLOSE_TIMEOUT_S,
            max_size=SPACE_MAX_PAYLOAD_BYTES,
            max_queue=_READ_AHEAD,
            logger=_quiet_logger(),
            create_connection=cast("type[WebSocket]", partial(RoomSocket, observer=self)),
        )

    def _admit(self, socket: WebSocket, request: Request) -> Response | None:
        headers, address = request.headers, cast("RoomSocket", socket).address
        refusal = self._limiter.refusal(address, self._clock.monotonic())
        if refusal is None and refused_origin(headers.get_all("Origin"), self._origins):
            refusal = HTTPStatus.FORBIDDEN, "Web pages may join only from an origin in SPACE_ORIGINS.\n"
        if refusal is None and refused_token(request.path, self._token):
            refusal = HTTPStatus.UNAUTHORIZED, "This room asks for a token: add ?token=... to its URL.\n"
        if refusal is None:
            return None
        self._note_counted(f"Connection refused: {refusal[1].strip()}", address)
        return socket.respond(*refusal)

    async def _serve(self, websocket: WebSocket) -> None:
        number, socket = next(self._numbers), cast("RoomSocket", websocket)
        connection = self._connections[number] = ServerConnection(socket, self.most_waiting)
        socket.on_pong = lambda: self._do(self._room.ponged(number))
        self._do(self._room.opened(number, socket.address))
        try:
            while (raw := await connection.receive()) is not None:
                self._do(self._room.received(number, raw))
        except Exception as error:
            self._note("error", "A connection failed", repr(error))
        finally:
            del self._connections[number]
            self._unflushed.discard(connection)
            self._do(self._room.closed(number))

    async def _tick_on(self) -> None:
        while True:
            await self._clock.sleep(_TICK_S)
            try:
                self._do(self._room.tick())
                for connection in list(self._connections.values()):
                    connection.tidy()
                for message, count in self._repeated.due(self._clock.monotonic()):
                    self._note("warn", message, f"{count:,} more times within a minute")
            except Exception as error:
                self._note("error", "The room's clockwork failed", repr(error))

    def _do(self, effects: Iterable[Effect]) -> None:
        """Carry out effects in their order; what a view asks for while it is told of one comes after the others."""
        self._to_do.extend(effects)
        if self._doing:
            return
        self._doing = True
        try:
            while self._to_do:
                self._carry_out(self._to_do.popleft())
        finally:
            self._doing = False

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Deliver():
                self._deliver(frame_bytes(effect.text), effect.to)
            case Record():
                if self._log is not None:
                    self._log.append(effect.entry)
            case Tell():
                self._untold.append(effect.event)
                self._end_turn_soon()
            case Log(level="warn"):
                self._note_counted(effect.message, effect.detail)
            case Log():
                self._note(effect.level, effect.message, effect.detail)
            case Close() | Abort() | Ping():
                self._handle_connection(effect)

    def _handle_connection(self, effect: Close | Abort | Ping) -> None:
        connection = self._connections.get(effect.connection)
        if connection is None:
            return
        match effect:
            case Close():
                connection.close(effect.code, effect.reason)
            case Ping():
                connection.ping()
            case Abort():
                connection.abort()

    def _deliver(self, frame: bytes, to: tuple[int, ...]) -> None:
        self._end_turn_soon()
        for number in to:
            connection = self._connections.get(number)
            if connection is not None:
                self._unflushed.add(connection)
                if not connection.push(frame):
                    self._note_counted("Cut off: it does not read", connection.socket.address)

    def _end_turn_soon(self) -> None:
        if not self._turn_ending:
            self._turn_ending = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """What was pushed goes out, and only then the host is told: no view delays a member."""
        self._turn_ending = False
        self._flush()
        while self._untold:
            self._tell(self._untold.popleft())

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, set()
        for connection in unflushed:
            if not connection.flush():
                self._note_counted("Cut off: it does not read", connection.socket.address)

    def _tell(self, event: Event) -> None:
        try:
            self._host.happened(event)
        except Exception as error:
            self._note("error", "The host's view failed", repr(error))

    def _note_counted(self, message: str, detail: str) -> None:
        """A warning that members or strangers can cause again and again."""
        if self._repeated.is_told(message, self._clock.monotonic()):
            self._note("warn", message, detail)

    def _note(self, level: LogLevel, message: str, detail: str = "") -> None:
        self._host.log(level, message, detail)


def _no_ear(error: OSError, bind: str, port: int) -> Err:
    """Why it cannot listen there; what asyncio says of it names the socket's own tuple, and not always the number."""
    if error.errno in {None, errno.EADDRNOTAVAIL}:
        return Err(f"{bind} is no address of this machine", "not_found")
    why = os.strerror(error.errno) if error.errno in errno.errorcode else error.strerror
    return Err(
        f"Cannot listen on port {port} of {bind}: {why}", "conflict" if error.errno == errno.EADDRINUSE else "invalid"
    )


def _past(log: ChatLog) -> tuple[Replay, str]:
    return Replay(log.get_recent_history(_REMEMBERED_ENTRIES)), log.room_id()


async def _within(seconds: float, waits: Iterable[Awaitable[None]]) -> bool:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late)
    return not late


def _quiet_logger() -> logging.Logger:
    """Strangers who speak no WebSocket are no news; what concerns members comes from the rules."""
    logger = logging.getLogger("adapters.space.server")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger
