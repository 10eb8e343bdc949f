"""Serves an ASGI application on loopback: for the town's own services, for tests and for the owner's page.

Nothing here survives a crash; the socket belongs to the process and is gone with it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast

import uvicorn
from starlette.responses import Response, StreamingResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.errors import ConfigError, PortTaken

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn._types import ASGIApplication

LOOPBACK = "127.0.0.1"
Listener: TypeAlias = socket.socket
_TICK_S = 1
_GRACE_S = 0.5
_CANCEL_AFTER_S = 1
_LOOK_S = 0.002
_DROP = "drop_connection"
_ACCEPTED_AT_ONCE = 16
_QUEUE = 256
STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
_TAKEN = {errno.EADDRINUSE: "is in use", errno.EACCES: "may not be used by this user"}


def event_stream(events: AsyncIterable[str] | Iterable[str]) -> StreamingResponse:
    """Return a response of server-sent events, each sent at once: headers tell proxies not to buffer them."""
    return StreamingResponse(events, media_type="text/event-stream", headers=STREAM_HEADERS)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on what clients may use of the process that serves them.

    Attributes:
        connections: the maximum of open connections. A new one closes the one that has been idle longest; if none is
            idle, the new one is closed.
        head_s: seconds within which the head of a request must arrive, counted from the connection or the last answer.

    """

    connections: int
    head_s: float


@asynccontextmanager
async def serve(
    app: ASGIApp,
    *,
    port: int = 0,
    host: str = LOOPBACK,
    limits: ConnectionLimits | None = None,
    listener: socket.socket | None = None,
) -> AsyncIterator[str]:
    """Serve `app` on `host` and yield its address, `http://HOST:PORT`; port 0 picks a free port.

    A `listener` from `listen_at` replaces both; it is closed on exit. On exit, open requests get half a second to end,
    then their connections are closed, and requests that still run are cancelled.

    Raises:
        ConfigError: it cannot listen there, for example because the port is taken.

    """
    listener = listener or listen_at(host, port)

    async def until_left(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:  # uvicorn would report it as a failure
            if not server.should_exit:
                raise

    config = uvicorn.Config(
        cast("ASGIApplication", until_left),
        http=_limited(limits) if limits else _Protocol,
        ws="none",
        # NOTE(self): asyncio accepts this many in one step of its loop, before it can close any of them.
        backlog=_ACCEPTED_AT_ONCE,
        log_config=None,
        log_level="error",
        access_log=False,
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]), name="loopback server")
    try:
        await server.ready(running)
        listener.listen(_QUEUE)
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.leave()
        try:
            await running
        finally:
            listener.close()


def connection_dropper(scope: Scope) -> Callable[[], None]:
    """Return a function that closes the client's connection without an answer; only for applications under `serve`."""
    return cast("Callable[[], None]", scope["state"][_DROP])


def drop(request: Request) -> Response:
    """Close the client's connection without an answer."""
    connection_dropper(request.scope)()
    return Response()


async def until_gone(request: Request, waiting: Awaitable[None]) -> None:
    """Wait for `waiting`, but no longer than until the client disconnects."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = {asyncio.ensure_future(waiting), asyncio.ensure_future(gone())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket bound to `host` and `port`, 0 for a free one. Raises `ConfigError` if that is impossible."""
    # NOTE(self): unless the protocol is named, asyncio leaves Nagle on, and a streamed answer is delayed by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.encode("idna"), port))
    except (OSError, UnicodeError) as error:
        listener.close()
        if taken := _TAKEN.get(getattr(error, "errno", 0)):
            raise PortTaken(
                f"port {port} on {host} {taken}",
                remedy="stop what listens there, or choose another port (0 takes any free one)",
            ) from error
        raise ConfigError(
            f"nobody can listen at {host}: {getattr(error, 'strerror', '') or 'it is no name of a host'}",
            remedy=f"set DASHBOARD_HOST to an IPv4 address that this machine has now, such as {LOOPBACK}",
        ) from error
    return listener


class _Server(uvicorn.Server):
    """Uvicorn that leaves the process's signals alone and reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._listening = asyncio.Event()
        self._leaving = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as error:
            raise RuntimeError("the application did not start") from error
        self._listening.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), _TICK_S)

    def leave(self) -> None:
        self.should_exit = True
        self._leaving.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close all connections within a second. Uvicorn's own method waits 0.1 s even if no connection is open."""
        for listening in self.servers:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if not await self._idle(_GRACE_S):
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            if not await self._idle(_CANCEL_AFTER_S - _GRACE_S):
                for task in self.server_state.tasks:
                    task.cancel()
        for listening in self.servers:
            await listening.wait_closed()
        await self.lifespan.shutdown()

    async def _idle(self, within_s: float) -> bool:
        """Return whether every connection is closed and every request has ended within `within_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - there is no event
                    await asyncio.sleep(_LOOK_S)
        return not (self.server_state.connections or self.server_state.tasks)

    async def ready(self, running: asyncio.Task[None]) -> None:
        listening = asyncio.ensure_future(self._listening.wait())
        try:
            await asyncio.wait({listening, running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
        if running.done():
            running.result()


class _Protocol(H11Protocol):
    """HTTP/1.1 whose applications can drop the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server gets no other kind
        super().connection_made(transport)
        self.app_state = {**self.app_state, _DROP: transport.abort}


class _LimitedProtocol(_Protocol):
    """HTTP/1.1 that enforces `ConnectionLimits`."""

    limits: ClassVar[ConnectionLimits]
    waits_since: float = 0.0
    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            others = (one for one in self.connections if isinstance(one, _LimitedProtocol) and one is not self)
            idle = [one for one in others if one.is_idle]
            min(idle, key=lambda one: one.waits_since, default=self).leave()
        self._limit_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_wait()

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress on the connection."""
        return self.cycle is None or self.cycle.response_complete

    def _limit_wait(self) -> None:
        """Close the connection if the head of the next request does not arrive in time."""
        self.waits_since = self.loop.time()
        self._stop_timer()
        self._end = self.loop.call_later(self.limits.head_s, self._end_wait)

    def _end_wait(self) -> None:
        if self.is_idle:
            self.leave()

    def _stop_timer(self) -> None:
        if self._end is not None:
            self._end.cancel()

    def leave(self) -> None:
        self.connections.discard(self)
        self.transport.abort()


def _limited(limits: ConnectionLimits) -> type[_LimitedProtocol]:
    class Limited(_LimitedProtocol):
        pass

    Limited.limits = limits
    return Limited
