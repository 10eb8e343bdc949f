"""Serves a room over WebSockets: admits connections, passes what they send to the core, and carries out its effects.

It runs on one event loop without locks. A frame for all members is encoded once. Neither a peer that does not read nor
a host that fails delays anybody. After a kill the record is complete, and the next start replays it; members reconnect
by themselves.
"""

import asyncio
import errno
import hmac
import itertools
import logging
import os
from collections import Counter, deque
from collections.abc import Awaitable, Collection, Iterable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Literal, Protocol, cast
from urllib.parse import parse_qs, urlsplit

from cachetools import LRUCache
from websockets.asyncio.server import Server, serve
from websockets.asyncio.server import ServerConnection as WebSocket
from websockets.http11 import Request, Response

from adapters.space.chatlog import ChatLog
from adapters.space.room import Room
from adapters.space.room_allowance import Bucket, Replay
from adapters.space.room_state import Abort, Close, Deliver, Effect, Log, NotifyHost, Ping, RecordEffect
from adapters.space.server_connection import RoomSocket, ServerConnection, frame_bytes
from adapters.space.types import HOST, Presence, SpaceEvent
from adapters.space.wire import SPACE_MAX_PAYLOAD_BYTES
from common.clock import Clock, SystemClock
from common.constants import SPACE_DEFAULT_PORT
from common.result import ApiResult, Err, Ok

LogLevel = Literal["info", "warn", "error"]


class RoomHost(Protocol):
    """The host's view of a room.

    Calls come in the order of the events, on the server's event loop, after the members' frames were sent. They must
    return at once; an exception is reported through `log` and does not affect the room.
    """

    def happened(self, event: SpaceEvent) -> None:
        """Handle an event that was sent to the members, the host's own messages included.

        A `PresenceList` follows whenever the members or their identities changed.
        """
        ...

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """Log a line for the operator. `message` is a fixed text; `detail` may hold untrusted text."""
        ...


class SilentHost:
    """A host that ignores everything."""

    def happened(self, event: SpaceEvent) -> None:
        """Do nothing."""

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        """Do nothing."""


TOLD_EVERY_S = 60.0
MAX_ATTEMPTS = 256
ATTEMPTS_A_SECOND = 4.0
_MOST_ADDRESSES = 4_096


class ConnectionLimiter:
    """Counts open connections in all and by address, and limits how often an address may connect."""

    def __init__(self, *, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()
        self._attempts = LRUCache[str, Bucket](_MOST_ADDRESSES)

    def enter(self, address: str) -> None:
        self._by_address[address] += 1

    def leave(self, address: str) -> None:
        self._by_address[address] -= 1
        self._by_address += Counter()

    def refusal(self, address: str, now: float) -> tuple[HTTPStatus, str] | None:
        """Return the response that refuses a connection counted by `enter`, or None. `now` is monotonic s."""
        if self._by_address.total() > self._most:
            return HTTPStatus.SERVICE_UNAVAILABLE, "The room is full.\n"
        if self._by_address[address] > self._most_per_address:
            return HTTPStatus.TOO_MANY_REQUESTS, "Too many connections from your address.\n"
        if not self._attempts.setdefault(address, Bucket(MAX_ATTEMPTS, ATTEMPTS_A_SECOND)).take(1, now):
            return HTTPStatus.TOO_MANY_REQUESTS, "Your address connects too often.\n"
        return None

    @property
    def is_overloaded(self) -> bool:
        """Whether there are so many connections that even refusing them by a response costs too much."""
        return self._by_address.total() > 2 * self._most


class RepeatedWarnings:
    """Limits log lines that remote peers can cause: each kind is logged at once, and then counted for a minute."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[float, int]] = {}

    def admit_line(self, kind: str, now: float) -> bool:
        """Count a line of this kind; return whether to log it now. Times are monotonic s."""
        since, count = self._counted.get(kind, (now, -1))
        self._counted[kind] = since, count + 1
        return count < 0

    def due(self, now: float) -> list[tuple[str, int]]:
        """Return the kinds whose minute is over, with the number of repetitions in it."""
        over = [(kind, count) for kind, (since, count) in self._counted.items() if now - since >= TOLD_EVERY_S]
        for kind, count in over:
            if count:
                self._counted[kind] = now, 0
            else:
                del self._counted[kind]
        return [(kind, count) for kind, count in over if count]


def refused_origin(origins: Collection[str], allowed: Collection[str]) -> bool:
    """Return whether the `Origin` headers of a request name a web page that may not join. No header: not a browser."""
    return bool(origins) and (len(origins) > 1 or not set(origins) <= set(allowed))


def refused_token(path: str, token: str) -> bool:
    """Return whether the `?token=` of a request is wrong. An empty `token` requires none."""
    if not token:
        return False
    given = parse_qs(urlsplit(path).query).get("token", [])
    return len(given) != 1 or not hmac.compare_digest(given[0].encode(), token.encode())


MAX_CONNECTIONS = 256
MAX_CONNECTIONS_PER_ADDRESS = 128
MAX_WAITING_BYTES = 4 * 1024 * 1024
OPEN_TIMEOUT_S = 5.0
_CLOSE_TIMEOUT_S = 2.0
_TICK_S = 0.25
_READ_AHEAD = 8
_REMEMBERED_ENTRIES = 10_000


class SpaceServer:
    """A room that accepts connections.

    Args:
        persistence: the record; None keeps no record.
        host: informed about every event.
        host_name: the name under which the host writes.
        clock: the source of time.
        token: required as `?token=` of the URL; "" requires none.
        origins: web origins that may connect, such as `http://127.0.0.1:8000`. A request without an `Origin` header
            does not come from a browser, and is accepted.
        max_connections: the limit in all.
        max_per_address: the limit for one remote address.
        max_waiting_bytes: the send buffer at which a member that does not read is dropped.
        open_timeout_s: the time for the opening handshake.

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
        self._unreported: deque[SpaceEvent] = deque()
        self._send_scheduled = False
        self._numbers = itertools.count(1)
        self._pending: deque[Effect] = deque()
        self._applying = False
        self._ticking: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port it listens on; 0 before the start."""
        sockets = list(self._servers[0].sockets) if self._servers else []
        return int(sockets[0].getsockname()[1]) if sockets else 0

    @property
    def host_id(self) -> str:
        """The id of the host."""
        return self._room.host_id

    @property
    def waiting(self) -> tuple[int, ...]:
        """Unsent bytes of each connection, fewest first."""
        return tuple(sorted(connection.waiting for connection in self._connections.values()))

    def get_connected_agents(self) -> tuple[Presence, ...]:
        """Return the members, in the order in which they joined."""
        return self._room.agents

    async def start(self, port: int = SPACE_DEFAULT_PORT, binds: Sequence[str] = ("127.0.0.1",)) -> ApiResult[int]:
        """Listen on one port (0: any free one) of each address; return the port.

        Errors: `conflict` (in use), `not_found` (not an address of this machine), `invalid` (not permitted).
        """
        if self._log is not None:
            self._room.remember(*await asyncio.to_thread(_load_record, self._log))
        for bind in binds:
            wanted = self.port or port
            try:
                self._servers.append(await self._listen(bind, wanted))
            except OSError as error:
                await self.stop()
                return _listen_error(error, bind, wanted)
        self._ticking = asyncio.create_task(self._tick_forever())
        return Ok(self.port)

    async def stop(self) -> None:
        """Close all connections, and drop those that do not answer the close frame within 2 s."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.wait([self._ticking])
            self._ticking = None
        self._apply(self._room.finish())
        self._send_pending()
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
        """Send a message of the host to all members."""
        self._apply(self._room.say(text))

    def remove(self, name: str) -> bool:
        """Remove a member, and close its name to its address for ten minutes. Return whether there was one."""
        effects = self._room.remove(name)
        self._apply(effects)
        return bool(effects)

    def broadcast_shutdown(self) -> None:
        """Announce the shutdown to all members; new joins are refused. `stop` must follow."""
        self._apply(self._room.drain())

    def socket_opened(self, connection: RoomSocket) -> None:
        """Implement `SocketObserver`."""
        self._sockets.add(connection)
        self._limiter.enter(connection.address)
        if self._limiter.is_overloaded:
            connection.transport.abort()

    def socket_closed(self, connection: RoomSocket) -> None:
        """Implement `SocketObserver`."""
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
        self._warn(f"Connection refused: {refusal[1].strip()}", address)
        return socket.respond(*refusal)

    async def _serve(self, websocket: WebSocket) -> None:
        number, socket = next(self._numbers), cast("RoomSocket", websocket)
        connection = self._connections[number] = ServerConnection(socket, self.most_waiting)
        socket.on_pong = lambda: self._apply(self._room.ponged(number))
        self._apply(self._room.opened(number, socket.address))
        try:
            while (raw := await connection.receive()) is not None:
                self._apply(self._room.received(number, raw))
        except Exception as error:
            self._report("error", "A connection failed", repr(error))
        finally:
            del self._connections[number]
            self._unflushed.discard(connection)
            self._apply(self._room.closed(number))

    async def _tick_forever(self) -> None:
        while True:
            await self._clock.sleep(_TICK_S)
            try:
                self._apply(self._room.tick())
                for connection in list(self._connections.values()):
                    connection.tidy()
                for message, count in self._repeated.due(self._clock.monotonic()):
                    self._report("warn", message, f"{count:,} more times within a minute")
            except Exception as error:
                self._report("error", "The room's clockwork failed", repr(error))

    def _apply(self, effects: Iterable[Effect]) -> None:
        """Carry out effects in order; those that an effect itself causes follow after the others."""
        self._pending.extend(effects)
        if self._applying:
            return
        self._applying = True
        try:
            while self._pending:
                self._carry_out(self._pending.popleft())
        finally:
            self._applying = False

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Deliver():
                self._deliver(frame_bytes(effect.text), effect.to)
            case RecordEffect():
                if self._log is not None:
                    self._log.append(effect.entry)
            case NotifyHost():
                self._unreported.append(effect.event)
                self._schedule_send()
            case Log():
                self._warn(effect.message, effect.detail)
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
        self._schedule_send()
        for number in to:
            connection = self._connections.get(number)
            if connection is not None:
                self._unflushed.add(connection)
                if not connection.push(frame):
                    self._warn("Cut off: it does not read", connection.socket.address)

    def _schedule_send(self) -> None:
        if not self._send_scheduled:
            self._send_scheduled = True
            asyncio.get_running_loop().call_soon(self._send_pending)

    def _send_pending(self) -> None:
        """Send what was pushed, and then inform the host, so that no view delays a member."""
        self._send_scheduled = False
        self._flush()
        while self._unreported:
            self._notify_host(self._unreported.popleft())

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, set()
        for connection in unflushed:
            if not connection.flush():
                self._warn("Cut off: it does not read", connection.socket.address)

    def _notify_host(self, event: SpaceEvent) -> None:
        try:
            self._host.happened(event)
        except Exception as error:
            self._report("error", "The host's view failed", repr(error))

    def _warn(self, message: str, detail: str) -> None:
        """Log a warning that remote peers can cause repeatedly; repetitions within a minute are counted."""
        if self._repeated.admit_line(message, self._clock.monotonic()):
            self._report("warn", message, detail)

    def _report(self, level: LogLevel, message: str, detail: str = "") -> None:
        self._host.log(level, message, detail)


def _listen_error(error: OSError, bind: str, port: int) -> Err:
    """Return why it cannot listen; asyncio's own text shows a raw address tuple, and not always the error number."""
    if error.errno in {None, errno.EADDRNOTAVAIL}:
        return Err(f"{bind} is no address of this machine", "not_found")
    why = os.strerror(error.errno) if error.errno in errno.errorcode else error.strerror
    return Err(
        f"Cannot listen on port {port} of {bind}: {why}", "conflict" if error.errno == errno.EADDRINUSE else "invalid"
    )


def _load_record(log: ChatLog) -> tuple[Replay, str]:
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
    """Return a logger that drops the library's lines about failed handshakes; the room's core logs what matters."""
    logger = logging.getLogger("adapters.space.server")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return logger
