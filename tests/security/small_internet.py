"""A small internet for tests of fetching: names, servers on loopback that play public ones, and traps.

`PUBLIC` and `PUBLIC_V6` stand for servers of the open web: a connection to one goes to a server of the test. Every
other address is really dialled, so that what gets past the policy reaches a trap or is recorded.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpcore

from adapters.web.client import WebClient, WebTransport
from adapters.web.types import Fetched
from common.result import ApiResult

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]


def page(body: bytes = b"hello", *headers: str, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    """Return a complete HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def moved(location: str, status: str = "302 Found") -> bytes:
    """Return a redirect to `location`."""
    return page(b"", f"location: {location}", status=status)


@dataclass
class Names:
    """A resolver: each lookup of a name takes its next answer; the last one is repeated."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def tell(self, host: str, *answers: Iterable[str]) -> None:
        self.answers[host] = [list(answer) for answer in answers]

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        known = self.answers.get(host)
        if known is None:
            raise OSError(f"no such host: {host}")
        return known.pop(0) if len(known) > 1 else known[0]


class RecordingBackend(httpcore.AsyncNetworkBackend):
    """Makes the connections and records their addresses."""

    def __init__(self, public_port: int) -> None:
        self._public_port = public_port
        self._real = httpcore.AnyIOBackend()
        self.taken: list[str] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.taken.append(host)
        if host in {PUBLIC, PUBLIC_V6}:
            host, port = "127.0.0.1", self._public_port
        return await self._real.connect_tcp(host, port, timeout, local_address, socket_options)

    @property
    def forbidden(self) -> list[str]:
        return [address for address in self.taken if address not in {PUBLIC, PUBLIC_V6}]


@dataclass
class Trap:
    """Listens where nobody may connect."""

    port: int = 0
    hits: int = 0


@dataclass
class SmallInternet:
    """The internet of one test. `answer` speaks for every public server; it gets the head of the request."""

    trap: Trap
    names: Names
    backend: RecordingBackend
    port: int
    answer: Answer
    seen: list[str] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    def say(self, *answers: bytes) -> None:
        """Give these answers in order and repeat the last one."""
        left = list(answers)

        async def answer(_: str, writer: asyncio.StreamWriter) -> None:
            writer.write(left.pop(0) if len(left) > 1 else left[0])

        self.answer = answer

    def transport(self, *allow: str, private_ok: bool = False) -> WebTransport:
        return WebTransport(
            allow=allow, private_ok=private_ok, resolve=self.names, dialer=self.backend, certificates=self.tls
        )

    def client(self, *allow: str, private_ok: bool = False) -> WebClient:
        return WebClient(self.transport(*allow, private_ok=private_ok))


@asynccontextmanager
async def open_internet(server_tls: ssl.SSLContext | None = None) -> AsyncIterator[SmallInternet]:
    """Open traps on 127.0.0.1 and ::1, one server for all that is public, and a resolver that knows one name."""
    trap = Trap()

    async def knock(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        trap.hits += 1
        writer.write(page(b"secret"))
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            internet.seen.append(head)
            await internet.answer(head, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    trapped = await asyncio.start_server(knock, "127.0.0.1", 0)
    trap.port = trapped.sockets[0].getsockname()[1]
    trapped_v6 = await asyncio.start_server(knock, "::1", trap.port)
    public = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls)
    port = public.sockets[0].getsockname()[1]
    names = Names()
    names.tell("public.example", [PUBLIC])
    internet = SmallInternet(trap, names, RecordingBackend(port), port, _nothing)
    internet.say(page())
    try:
        yield internet
    finally:
        for server in (trapped, trapped_v6, public):
            server.close()


async def _nothing(_: str, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def fetch(
    internet: SmallInternet,
    url: str,
    *allow: str,
    max_bytes: int = 100_000,
    deadline_s: float = 10,
    private_ok: bool = False,
) -> ApiResult[Fetched]:
    client = internet.client(*allow, private_ok=private_ok)
    try:
        kinds, named = ["text/*"], bool(allow)
        return await client.fetch(url, kinds=kinds, max_bytes=max_bytes, deadline_s=deadline_s, named=named)
    finally:
        await client.aclose()


def untouched(internet: SmallInternet) -> bool:
    return internet.trap.hits == 0 and internet.backend.forbidden == []
