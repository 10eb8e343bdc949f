"""One connection of a room's server: frames are buffered, and sent in one write for each iteration of the event loop.

A peer that does not read is dropped when its send buffer exceeds the limit. Nothing is kept on disk.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Protocol

from websockets.asyncio.server import Server
from websockets.asyncio.server import ServerConnection as WebSocket
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.server import ServerProtocol

_FLUSH_BYTES = 256 * 1024
_KERNEL_BYTES = 256 * 1024
_CLOSE_TIMEOUT_S = 5.0


def frame_bytes(text: str) -> bytes:
    """Return a WebSocket text frame. It is the same for every receiver, so it is made once."""
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


class SocketObserver(Protocol):
    """Is informed about each socket from its first byte on."""

    @property
    def most_waiting(self) -> int:
        """The limit of unsent bytes for one peer."""
        ...

    def socket_opened(self, connection: RoomSocket) -> None:
        """Handle a new socket, of which nothing was received yet."""
        ...

    def socket_closed(self, connection: RoomSocket) -> None:
        """Handle the end of a socket."""
        ...


class RoomSocket(WebSocket):
    """A WebSocket that reports its opening, its end and every pong."""

    def __init__(self, protocol: ServerProtocol, server: Server, *, observer: SocketObserver, **limits: Any) -> None:  # noqa: ANN401
        super().__init__(protocol, server, **limits)
        self._observer = observer
        self.address = ""
        self.on_pong: Callable[[], None] = _nobody_waits

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        super().connection_made(transport)
        self._observer.socket_opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._observer.socket_closed(self)

    def process_event(self, event: Event) -> None:
        super().process_event(event)
        opcode = event.opcode if isinstance(event, Frame) else None
        if opcode is Opcode.PONG:
            self.on_pong()
        elif opcode is Opcode.PING and self.transport.get_write_buffer_size() > self._observer.most_waiting:
            self.transport.abort()


class ServerConnection:
    """The send buffer of one socket. `flush` must follow `push` within the same iteration of the event loop."""

    def __init__(self, socket: RoomSocket, most_waiting: int) -> None:
        self.socket = socket
        self._most_waiting = most_waiting
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._close_by: float | None = None

    @property
    def waiting(self) -> int:
        """Unsent bytes, as far as this process knows."""
        return self._pending_bytes + self.socket.transport.get_write_buffer_size()

    def push(self, frame: bytes) -> bool:
        """Buffer a frame; return False if the peer was dropped because it does not read."""
        self._pending.append(frame)
        self._pending_bytes += len(frame)
        return self._pending_bytes < _FLUSH_BYTES or self.flush()

    def flush(self) -> bool:
        """Send the buffered frames; return False if the peer was dropped because it does not read."""
        frames, self._pending, self._pending_bytes = self._pending, [], 0
        if not frames or not self._is_open():
            return True
        transport = self.socket.transport
        transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        if transport.get_write_buffer_size() <= self._most_waiting:
            return True
        transport.abort()
        return False

    def close(self, code: int, reason: str) -> None:
        """Send a close frame after the buffered frames; `tidy` drops a peer that does not answer it."""
        self.flush()
        if self._is_open():
            self.socket.protocol.send_close(code, reason)
            self.socket.send_data()
            self._close_by = self.socket.loop.time() + _CLOSE_TIMEOUT_S

    def ping(self) -> None:
        self.flush()
        if self._is_open():
            self.socket.protocol.send_ping(b"")
            self.socket.send_data()

    def abort(self) -> None:
        self.socket.transport.abort()

    def tidy(self) -> None:
        """Drop a peer that has not answered a close frame within 5 s."""
        if self._close_by is not None and self.socket.loop.time() >= self._close_by:
            self.abort()

    async def receive(self) -> str | bytes | None:
        """Return the next message, or None after the end of the connection."""
        try:
            return await self.socket.recv()
        except ConnectionClosed:
            return None

    def _is_open(self) -> bool:
        return self.socket.protocol.state is State.OPEN and not self.socket.transport.is_closing()


def _nobody_waits() -> None:
    """Ignore a pong that comes before the connection is served."""
