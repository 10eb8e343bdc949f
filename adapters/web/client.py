"""Fetches one resource from the open web within limits (address, size, time, type, redirects), or posts a text.

It also holds the program's one HTTP transport, which resolves a name once, checks every address, and connects to the
addresses it checked. No cookies are kept and no credentials sent; nothing is kept across a crash, and nothing needs to
be.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import TypeVar

import httpcore
import httpx

from adapters.web.policy import (
    DEFAULT_PORTS,
    MAX_REDIRECTS,
    WebOrigin,
    is_address,
    refused_addresses,
    refused_redirect,
    refused_url,
)
from adapters.web.types import Fetched
from common.result import ApiResult, Err, ErrKind, Ok
from common.version import __version__

RESOLVE_TIMEOUT_S = 10.0
_MOST_ADDRESSES = 4

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port, as text. Raises `OSError` if it cannot."""


class RefusedConnection(httpx.UnsupportedProtocol):
    """The policy forbids the request; nothing was sent."""


class RefusedAddresses(RefusedConnection):
    """The policy forbids the addresses that the name has now; another network may resolve it differently later."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return the addresses that this machine's resolver knows, best first."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class VettedBackend(httpcore.AsyncNetworkBackend):
    """Connects to a host only if every address of it passes a check.

    Attributes:
        dialer: makes the connection to an address.
        resolve: looks up names.
        refused: returns why a host with these addresses may not be reached; "" if it may.

    """

    dialer: httpcore.AsyncNetworkBackend
    resolve: Resolver
    refused: Callable[[Sequence[str]], str]

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._addresses(host, port)
        if why := self.refused(addresses):
            refusal = RefusedConnection if is_address(host) else RefusedAddresses
            raise refusal(f"{host} is out of bounds: {why}")
        addresses = addresses[:_MOST_ADDRESSES]
        share = None if timeout is None else timeout / len(addresses)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self.dialer.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise RefusedConnection(f"{path} is a local socket")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if is_address(host):
            return [host]
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                return await self.resolve(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} could not be looked up in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} could not be looked up") from error


MAX_BYTES = 64 * 1024 * 1024
FOREIGN = "foreign"
"""The extension of a request that is True if somebody else chose the URL: then `allow` does not apply."""
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
    """The answer has more bytes, once inflated, than are allowed."""


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return this machine's certificates; they are read once, since that takes longer than a request."""
    return httpx.create_ssl_context()


def origin_of(url: httpx.URL) -> WebOrigin:
    """Return the origin of a URL, as the connection will use it; port 0 if none is known."""
    port = DEFAULT_PORTS.get(url.scheme, 0) if url.port is None else url.port
    return WebOrigin(url.scheme, url.raw_host.decode("ascii").lower(), port)


def _named_origin(url: str) -> WebOrigin:
    try:
        return origin_of(httpx.URL(url))
    except httpx.InvalidURL as error:
        raise ValueError(f"{url!r} is no URL: {error}") from error


class WebTransport(httpx.AsyncBaseTransport):
    """The HTTP transport of one client, which closes it.

    Args:
        allow: URLs of the services that the owner named. Only their origins are reached without a check.
        private_ok: whether requests to any URL may reach this machine and private networks (`SOUL_ALLOW_PRIVATE_NET`).
        resolve: looks up names.
        certificates: the certificates to trust; None: this machine's.
        dialer: makes connections to addresses.
        max_bytes: the largest size of one answer, once inflated.

    Raises:
        ValueError: `allow` holds something that is not a URL.

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
    """The body, inflated piece by piece and counted. A second iteration continues where the first one stopped."""

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
    """Raise errors of `httpcore` as the `httpx` errors of the same name."""
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
    """Return a function that makes the transport of one client: it reaches `service_url` and public addresses only.

    `private_ok` is `SOUL_ALLOW_PRIVATE_NET`; an answer has at most `max_bytes`. The client closes its transport.
    """
    return lambda: WebTransport(allow=(service_url,), private_ok=private_ok, max_bytes=max_bytes)


_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NO_PLACE = (RefusedConnection, httpx.UnsupportedProtocol, httpx.InvalidURL)
_BY_STATUS: Mapping[int, ErrKind] = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "transient",
    410: "not_found",
    425: "transient",
    429: "transient",
    501: "invalid",
    503: "transient",
}
_SERVER_ERROR = 500
_MAX_CHARS = 300


class Failure(Exception):
    """Carries an `Err` of ours through a client library."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.error)
        self.err = err


def unanswered(*, write: bool) -> ErrKind:
    """Return the kind of error for a request that was sent but got no usable answer."""
    return "unknown_outcome" if write else "transient"


def kind_of_status(status: int, *, write: bool, own: Mapping[int, ErrKind] | None = None) -> ErrKind:
    """Return the kind of error for an answer that is not a success; `own` holds the service's meanings of statuses."""
    kind = (own or {}).get(status) or _BY_STATUS.get(status)
    return kind or (unanswered(write=write) if status >= _SERVER_ERROR else "invalid")


def transport_error(error: BaseException, *, what: str, service: str, write: bool) -> Err:
    """Return the `Err` for what a client raised: `httpx.HTTPError`, `httpx.InvalidURL` or `TimeoutError`.

    Args:
        error: what was raised.
        what: what was tried; the message begins with it.
        service: the name of the service.
        write: whether the request changes something public.

    """
    if isinstance(error, RefusedAddresses):
        # NOTE(self): a network that requires a login first resolves every name to an address of its own.
        return Err(shortened(f"{what}: {error}"), kind="transient")
    if isinstance(error, _NO_PLACE):
        return Err(shortened(f"{what}: {error}"), kind="invalid")
    if isinstance(error, httpx.LocalProtocolError):
        return Err(f"{what}: the request cannot be put into HTTP", kind="invalid")
    if isinstance(error, _NEVER_SENT):
        return Err(f"{what}: no connection to {service}", kind="transient")
    late = isinstance(error, TimeoutError | httpx.TimeoutException)
    how = f"{service} did not answer in time" if late else f"the connection to {service} was lost"
    return Err(f"{what}: {how}", kind=unanswered(write=write))


def is_well(status: int | None) -> bool:
    """Return whether a status means that the service works; None means that no answer came."""
    return status is not None and status < _SERVER_ERROR and status != httpx.codes.TOO_MANY_REQUESTS


def shortened(text: str) -> str:
    """Return `text` on one line of at most 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"


_AGENT = f"py-general-agent/{__version__}"
_READ_TIMEOUT_S = 15.0

T = TypeVar("T")


class WebClient:
    """Fetches and posts through a transport, which it closes in the end."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def fetch(
        self, url: str, *, kinds: Collection[str], max_bytes: int, deadline_s: float, named: bool = False
    ) -> ApiResult[Fetched]:
        """Fetch the resource at `url`.

        Args:
            url: http or https.
            kinds: the accepted media types, with `*` for any: `text/*`, `application/json`.
            max_bytes: the largest size of the body, once inflated.
            deadline_s: seconds for the whole fetch, redirects included.
            named: whether the owner named `url`: only then the transport's `allow` applies, and only to that origin.

        Returns:
            `Err` of kind `invalid` if the policy, size, type or redirects forbid it; else by the status, or `transient`
                if no answer came.

        """
        return await _bounded(self._fetch(url, kinds, max_bytes, named=named), deadline_s)

    async def post(self, url: str, text: str, *, deadline_s: float) -> ApiResult[None]:
        """Send a text to a URL that the owner named. Redirects are not followed, and the answer is not read."""
        return await _bounded(self._post(url, text), deadline_s)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def _post(self, url: str, text: str) -> ApiResult[None]:
        request = _request(httpx.URL(url), foreign=False, text=text)
        response = await self._transport.handle_async_request(request)
        async with aclosing(response):
            return Ok(None) if response.is_success else _refused(response, write=True)

    async def _fetch(self, url: str, kinds: Collection[str], max_bytes: int, *, named: bool) -> ApiResult[Fetched]:
        place = first = httpx.URL(url)
        for _ in range(MAX_REDIRECTS + 1):
            foreign = not named or origin_of(place) != origin_of(first)
            response = await self._transport.handle_async_request(_request(place, foreign=foreign))
            async with aclosing(response):
                if not response.has_redirect_location:
                    return await _read(response, place, kinds, max_bytes)
                onward = place.join(response.headers["location"])
                if why := refused_redirect(place.scheme, onward.scheme):
                    return Err(why, kind="invalid")
                place = onward.copy_with(fragment=None)
        return Err(f"more than {MAX_REDIRECTS} redirects", kind="invalid")


async def _bounded(work: Awaitable[ApiResult[T]], deadline_s: float) -> ApiResult[T]:
    """Return the result of a request, or an `Err` if it failed or took longer than `deadline_s`."""
    try:
        async with asyncio.timeout(deadline_s):
            return await work
    except TimeoutError:
        return Err(f"no whole answer within {deadline_s:g} s", kind="transient")
    except (RefusedConnection, TooLarge, httpx.InvalidURL, httpx.DecodingError, UnicodeError) as error:
        return Err(str(error), kind="invalid")
    except httpx.HTTPError as error:
        return Err(f"no answer ({type(error).__name__})", kind="transient")


def _request(url: httpx.URL, *, foreign: bool, text: str | None = None) -> httpx.Request:
    """Return a GET, or a POST of `text`."""
    extensions = {"timeout": httpx.Timeout(_READ_TIMEOUT_S).as_dict(), FOREIGN: foreign}
    headers = {"user-agent": _AGENT, "accept": "*/*"}
    if text is None:
        return httpx.Request("GET", url, headers=headers, extensions=extensions)
    headers["content-type"] = "text/plain; charset=utf-8"
    return httpx.Request("POST", url, headers=headers, content=text.encode(), extensions=extensions)


def _refused(response: httpx.Response, *, write: bool) -> Err:
    status = response.status_code
    return Err(f"the answer is HTTP {status}", kind=kind_of_status(status, write=write), status=status)


async def _read(response: httpx.Response, url: httpx.URL, kinds: Collection[str], max_bytes: int) -> ApiResult[Fetched]:
    if not response.is_success:
        return _refused(response, write=False)
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not any(fnmatchcase(media, kind) for kind in kinds):
        return Err(f"the answer is {media or 'of no stated type'}, not {' or '.join(kinds)}", kind="invalid")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > max_bytes:
            return Err(f"the answer is larger than {max_bytes} bytes", kind="invalid")
    return Ok(Fetched(str(url), media, response.charset_encoding or "", bytes(body)))
