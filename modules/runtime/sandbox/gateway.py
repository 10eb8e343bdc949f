"""Lets a run without a network reach some hosts: an HTTP proxy on a Unix socket, outside the sandbox.

The run gets the socket as a shared folder and a relay (`relay.py`) that offers it as a proxy on its own loopback.
Only the hosts that were named are connected to; everything else is refused, and noted.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from adapters.web.client import trusted_certificates
from modules.runtime.sandbox.policy import MIB, Shared

Host = tuple[str, int]
"""A host name in lower case, and a port."""

_MOST_BYTES = 2048 * MIB
_HEAD_BYTES = 65_536
_CHUNK = 65_536
_HEAD_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 15.0
_IDLE_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = 5.0
_ACCEPT_ROUNDS = 4
"""After so many rounds of the event loop, a connection that was being accepted can be closed."""
_MOST_CONNECTIONS = 512
_PORTS = {"http": 80, "https": 443}
_SYSTEM = Path("/usr")


def host_of(url: str) -> Host | None:
    """Return the host and port of a URL, or None if it names none."""
    with suppress(ValueError):
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        if parts.hostname and port:
            return parts.hostname.lower(), port
    return None


@dataclass(frozen=True, slots=True)
class Upstream:
    """The requests that a run may send to one service; the run speaks plain HTTP to the gateway.

    Attributes:
        requests: the methods and targets that are passed on, for example `("GET", "/ada/garden.git/info/refs")`.
        header: a line that is added to each request and that the run never sees, such as one with a token; "" for none.
        is_secure: whether the gateway connects by TLS.

    """

    requests: frozenset[tuple[str, str]]
    header: str = field(default="", repr=False)
    is_secure: bool = True


@dataclass(slots=True)
class Gateway:
    """The proxy of one run.

    Attributes:
        folder: holds the socket.
        allowed: the hosts that may be reached; None: all of them. Each one reached is noted in `reached`.
        upstream: limits the requests to them; None: no limit.
        reached: the hosts that were asked for and allowed.
        refused: the hosts that were asked for and not allowed.
        bytes_left: how much may still pass, in and out, over all connections.

    """

    folder: Path
    allowed: frozenset[Host] | None
    upstream: Upstream | None = None
    reached: set[Host] = field(default_factory=set)
    refused: set[Host] = field(default_factory=set)
    bytes_left: int = _MOST_BYTES
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def shared(self) -> tuple[Shared, ...]:
        """The paths that the run needs to see: the socket, the relay, and the interpreter that runs it."""
        base = Path(sys.base_prefix).resolve()
        interpreter = () if base.is_relative_to(_SYSTEM) else (Shared("python", base),)
        return Shared("gateway", self.folder), Shared("relay.py", Path(__file__).with_name("relay.py")), *interpreter

    def relayed(self, seen_at: Callable[[Shared], str], command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Return the command that runs `command` with the gateway as its proxy, and the variables that it needs."""
        at = {one.name: seen_at(one) for one in self.shared}
        python = at.get("python", str(Path(sys.base_prefix).resolve()))
        program = f"{python}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
        line = [program, "-I", at["relay.py"], f"{at['gateway']}/socket", *command]
        return line, {"LD_LIBRARY_PATH": f"{python}/lib"} if "python" in at else {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection of the run, in a task that `close` ends."""
        self._open.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # the run notices that the connection ends
        except asyncio.CancelledError:
            pass  # cancelled by `close`, which waits for this task
        finally:
            await self._close(writer)

    async def close(self) -> None:
        """End all connections, so that none is left open."""
        for writer in self._open:
            writer.transport.abort()
        for task in (serving := tuple(self._serving)):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)  # lets aborted transports close their sockets

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_TIMEOUT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, _, rest = head.partition("\r\n")
        method, target, _ = line.split(" ", 2)
        host = host_of(f"https://{target}" if method == "CONNECT" else target)
        if host is None or not self._may_ask(method, target) or not self._may_reach(host):
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                tls = trusted_certificates() if self.upstream and self.upstream.is_secure else None
                there, back = await asyncio.open_connection(*host, ssl=tls)
            self._open.add(back)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                back.write(_request(method, target, rest, self.upstream.header if self.upstream else ""))
            copies = (self._copy(reader, back), self._copy(there, writer))
            await asyncio.gather(*copies, return_exceptions=True)  # one that fails closes what the other reads
        finally:
            await self._close(back)

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        """Close a connection once its data has been sent, or when that takes too long."""
        writer.close()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await writer.wait_closed()
        except OSError:
            pass  # the other side has closed it, or does not take the rest
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    def _may_ask(self, method: str, target: str) -> bool:
        return self.upstream is None or (method, _path_of(target)) in self.upstream.requests

    def _may_reach(self, host: Host) -> bool:
        if self.bytes_left <= 0 or len(self._serving) > _MOST_CONNECTIONS:
            return False
        is_allowed = self.allowed is None or host in self.allowed
        (self.reached if is_allowed else self.refused).add(host)
        return is_allowed

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while self.bytes_left > 0:
                async with asyncio.timeout(_IDLE_TIMEOUT_S):
                    if not (data := await reader.read(_CHUNK)):
                        return
                    self.bytes_left -= len(data)
                    writer.write(data)
                    await writer.drain()
        finally:
            with suppress(OSError):
                writer.close()


def _request(method: str, target: str, rest: str, header: str) -> bytes:
    """Turn a request to a proxy into one to the server; the server closes the connection after its answer."""
    kept = [line for line in rest.split("\r\n") if line and not line.lower().startswith(("connection:", "proxy-"))]
    added = [header] if header else []
    return "\r\n".join([f"{method} {_path_of(target)} HTTP/1.1", *kept, *added, "Connection: close", "", ""]).encode(
        "latin-1"
    )


def _path_of(target: str) -> str:
    parts = urlsplit(target)
    return f"{parts.path or '/'}{'?' * bool(parts.query)}{parts.query}"


@asynccontextmanager
async def open_gateway(
    allowed: frozenset[Host] | None, upstream: Upstream | None = None, most_bytes: int = _MOST_BYTES
) -> AsyncIterator[Gateway]:
    """Serve a gateway to `allowed`, or to all hosts if that is None; `most_bytes` may pass, in and out together."""
    with tempfile.TemporaryDirectory(prefix="soul-") as folder:
        gateway = Gateway(Path(folder), allowed, upstream, bytes_left=most_bytes)
        server = await asyncio.start_unix_server(gateway.accept, Path(folder) / "socket", limit=_HEAD_BYTES)
        try:
            yield gateway
        finally:
            # NOTE(self): a server that closes while it accepts a connection leaves that one open for good.
            for socket in server.sockets:
                asyncio.get_running_loop().remove_reader(socket.fileno())
            for _ in range(_ACCEPT_ROUNDS):
                await asyncio.sleep(0)
            server.close()
            await gateway.close()
