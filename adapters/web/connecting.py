"""How a connection is made: resolve once, check every answer, connect to what was checked.

The name is looked up here and nowhere after, so an answer that changes a moment later changes nothing. TLS and the
Host header keep the name, so a certificate is still checked against it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore
import httpx

from adapters.web.policy import is_address

RESOLVE_TIMEOUT_S = 10.0
_MOST_ADDRESSES = 4

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Turns a host and a port into addresses, as text. Raises `OSError` when it cannot."""


class RefusedConnection(httpx.UnsupportedProtocol):
    """The policy forbids the request; nothing was sent."""


class RefusedAddresses(RefusedConnection):
    """It forbids the addresses that the name has by the network of the moment, which may answer differently later."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The addresses that this machine's resolver knows, best first."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class VettedBackend(httpcore.AsyncNetworkBackend):
    """Connects to hosts whose every address passes a check.

    Args:
        dialer: makes the connection to an address.
        resolve: looks names up.
        refused: why a host with these addresses may not be reached; "" if it may.

    """

    def __init__(
        self,
        dialer: httpcore.AsyncNetworkBackend,
        *,
        resolve: Resolver,
        refused: Callable[[Sequence[str]], str],
    ) -> None:
        self._dialer = dialer
        self._resolve = resolve
        self._refused = refused

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._addresses(host, port)
        if why := self._refused(addresses):
            refusal = RefusedConnection if is_address(host) else RefusedAddresses
            raise refusal(f"{host} is out of bounds: {why}")
        addresses = addresses[:_MOST_ADDRESSES]
        share = None if timeout is None else timeout / len(addresses)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._dialer.connect_tcp(address, port, share, local_address, socket_options)
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
                return await self._resolve(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} could not be looked up in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} could not be looked up") from error
