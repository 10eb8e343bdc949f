"""The one HTTP transport of the program. Whoever speaks HTTP, our own code or an SDK, is handed one of these.

It refuses what the policy forbids before anything is sent, connects only to checked addresses, knows no proxy, and
hands out bodies piece by piece, inflated here and never beyond a limit. Nothing is kept but open connections.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial

import httpcore
import httpx

from adapters.web.connecting import RefusedConnection, Resolver, VettedBackend, system_resolver
from adapters.web.policy import DEFAULT_PORTS, WebOrigin, refused_addresses, refused_url

MAX_BYTES = 64 * 1024 * 1024
FOREIGN = "foreign"
"""True among a request's extensions, it says that somebody else chose the URL: no exception holds for it."""
_PIECE_BYTES = 64 * 1024
_KEEPALIVE_S = 4.0
_MAX_CONNECTIONS = 20
_PLAIN = {"", "identity"}
_GZIP = {"gzip", "x-gzip"}
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_CORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


class TooLarge(httpx.TransportError):
    """The answer has more bytes, once inflated, than may be read."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Those of this machine, read once: that takes longer than a request."""
    return httpx.create_ssl_context()


def origin_of(url: httpx.URL) -> WebOrigin:
    """The origin of a URL, as the connection will use it; port 0 where none is known."""
    port = DEFAULT_PORTS.get(url.scheme, 0) if url.port is None else url.port
    return WebOrigin(url.scheme, url.raw_host.decode("ascii").lower(), port)


def _named_origin(url: str) -> WebOrigin:
    try:
        return origin_of(httpx.URL(url))
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no URL: {error}") from error


class WebTransport(httpx.AsyncBaseTransport):
    """The way out for one client, which closes it.

    Args:
        allow: URLs of the services that the owner named. Their origins, and no others, are reached unchecked.
        private_ok: whether this machine and private networks are open to all (`SOUL_ALLOW_PRIVATE_NET`).
        resolve: looks names up.
        certificates: whom to trust; None: this machine's.
        dialer: makes connections to addresses.
        max_bytes: the most that one answer may have.

    Raises:
        ValueError: `allow` holds what is no URL.

    """

    def __init__(
        self,
        *,
        allow: Collection[str] = (),
        private_ok: bool = False,
        resolve: Resolver = system_resolver,
        certificates: ssl.SSLContext | None = None,
        dialer: httpcore.AsyncNetworkBackend | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._allow = frozenset(_named_origin(url) for url in allow)
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._certificates = certificates
        self._dialer = dialer or httpcore.AnyIOBackend()
        self._foreign = self._pool(partial(refused_addresses, private_ok=private_ok))
        self._named = self._pool(lambda addresses: "" if addresses else "the host has no address")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, origin = request.url, origin_of(request.url)
        named = origin in self._allow and not request.extensions.get(FOREIGN)
        if not named and (why := refused_url(*origin, userinfo=bool(url.userinfo))):
            raise RefusedConnection(f"{origin.host} is out of bounds: {why}", request=request)
        request.headers["accept-encoding"] = "gzip"
        pool = self._named if named else self._foreign
        with _speaking_httpx(request):
            answer = await pool.handle_async_request(_to_core(request))
        headers = httpx.Headers(answer.headers)
        encoding = headers.pop("content-encoding", "").strip().lower()
        if encoding not in _PLAIN:
            headers.pop("content-length", None)
        return httpx.Response(
            status_code=answer.status,
            headers=headers,
            stream=_Body(answer, request, encoding, self._max_bytes),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._foreign.aclose()
        await self._named.aclose()

    def _pool(self, refused: Callable[[Sequence[str]], str]) -> httpcore.AsyncConnectionPool:
        return httpcore.AsyncConnectionPool(
            ssl_context=self._certificates or trusted_certificates(),
            max_connections=_MAX_CONNECTIONS,
            keepalive_expiry=_KEEPALIVE_S,
            network_backend=VettedBackend(self._dialer, resolve=self._resolve, refused=refused),
        )


class _Body(httpx.AsyncByteStream):
    """The body, inflated piece by piece and counted. Who iterates again goes on where the last one stopped."""

    def __init__(self, answer: httpcore.Response, request: httpx.Request, encoding: str, max_bytes: int) -> None:
        self._answer = answer
        self._request = request
        self._encoding = encoding
        self._max_bytes = max_bytes
        self._pieces = self._inflated()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._pieces:
            self._max_bytes -= len(piece)
            if self._max_bytes < 0:
                raise TooLarge("the answer is too large", request=self._request)
            yield piece

    async def aclose(self) -> None:
        with _speaking_httpx(self._request):
            await self._pieces.aclose()
            await self._answer.aclose()

    async def _inflated(self) -> AsyncGenerator[bytes, None]:
        with _speaking_httpx(self._request):
            if self._encoding in _PLAIN:
                async for raw in self._answer.aiter_stream():
                    yield raw
                return
            if self._encoding not in _GZIP:
                raise httpx.DecodingError(f"the answer is encoded as {self._encoding!r}", request=self._request)
            inflating = zlib.decompressobj(_GZIP_WINDOW)
            async for raw in self._answer.aiter_stream():
                rest = raw
                while rest and not inflating.eof:
                    if piece := inflating.decompress(rest, _PIECE_BYTES):
                        yield piece
                    rest = inflating.unconsumed_tail
            yield inflating.flush()


def _to_core(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        method=request.method,
        url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _speaking_httpx(request: httpx.Request) -> Iterator[None]:
    """Errors of the layer below, by the same names one layer up."""
    try:
        yield
    except _CORE_ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error), request=request) from error
    except zlib.error as error:
        raise httpx.DecodingError("the answer is no gzip", request=request) from error
    except RefusedConnection as error:
        error.request = request
        raise


def http_transport_factory(
    service_url: str, *, private_ok: bool, max_bytes: int = MAX_BYTES
) -> Callable[[], WebTransport]:
    """Return what makes the transport of one client: it reaches `service_url` and public addresses, nothing else.

    `private_ok` is `SOUL_ALLOW_PRIVATE_NET`; an answer has at most `max_bytes`. The client closes what it made.
    """
    return lambda: WebTransport(allow=(service_url,), private_ok=private_ok, max_bytes=max_bytes)
