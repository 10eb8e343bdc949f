"""Browses the local network for advertised rooms, by multicast DNS.

Anybody in that network may advertise anything, so only hosts and ports are used, and few of them. Nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from zeroconf import IPVersion, ServiceListener, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from common.constants import SECOND_MS
from common.result import ApiResult, Err, Ok

SPACE_DISCOVERY_TIMEOUT_MS = 10 * SECOND_MS

SERVICE_TYPE: Final = "_agent-space._tcp.local."
BROWSE_S: Final = SPACE_DISCOVERY_TIMEOUT_MS / SECOND_MS
GATHER_S: Final = 1.5

_RESOLVE_WITHIN_S = 3.0
_MOST_SPACES = 20
_MOST_ADDRESSES = 16
_NAME_CHARS = 100


@dataclass(frozen=True, slots=True)
class Advertised:
    """A room as it is advertised; all fields are untrusted.

    Attributes:
        name: the instance name, without the service type.
        port: TCP.
        addresses: as text, IPv4 first; may be empty.
        host: where its service record points: a name, or an address written as one.

    """

    name: str
    port: int
    addresses: tuple[str, ...]
    host: str


async def browse(*, within_s: float = BROWSE_S, gather_s: float = GATHER_S) -> ApiResult[list[Advertised]]:
    """Rooms that answered within `gather_s` of the first, by name; none if `within_s` brought no answer.

    An `Err` (transient) says that multicast DNS does not work on this machine.
    """
    try:
        async with _zeroconf() as zeroconf, asyncio.TaskGroup() as group:
            seen = _ServiceResolver(zeroconf, group)
            browser = AsyncServiceBrowser(zeroconf.zeroconf, SERVICE_TYPE, listener=seen)
            try:
                await seen.gather(within_s, gather_s)
            finally:
                await browser.async_cancel()
                seen.stop()
    except OSError as error:
        return Err(f"multicast DNS does not work here: {error}", "transient")
    return Ok(sorted(seen.spaces.values(), key=lambda space: space.name))


class _ServiceResolver(ServiceListener):
    """Resolves each advertised name to a host and a port."""

    def __init__(self, zeroconf: AsyncZeroconf, group: asyncio.TaskGroup) -> None:
        self.spaces: dict[str, Advertised] = {}
        self._zeroconf = zeroconf
        self._group = group
        self._asked: dict[str, asyncio.Task[None]] = {}
        self._first = asyncio.Event()

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        if name not in self._asked and len(self._asked) < _MOST_SPACES:
            self._asked[name] = self._group.create_task(self._ask(name))

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.add_service(zc, type_, name)

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        self.spaces.pop(name, None)

    async def gather(self, within_s: float, gather_s: float) -> None:
        """Waits until some time after the first answer, or until there was none within `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._first.wait()
        except TimeoutError:
            return
        await asyncio.sleep(gather_s)

    def stop(self) -> None:
        """Cancels the pending lookups."""
        for asking in self._asked.values():
            asking.cancel()

    async def _ask(self, name: str) -> None:
        if (space := await _resolved(self._zeroconf, name)) is not None:
            self.spaces[name] = space
            self._first.set()


@asynccontextmanager
async def _zeroconf() -> AsyncIterator[AsyncZeroconf]:
    zeroconf = AsyncZeroconf(ip_version=IPVersion.V4Only)
    try:
        yield zeroconf
    finally:
        await zeroconf.async_close()


async def _resolved(zeroconf: AsyncZeroconf, name: str) -> Advertised | None:
    info = AsyncServiceInfo(SERVICE_TYPE, name)
    # NOTE(self): False also where only addresses are missing; the host's name may do without them.
    await info.async_request(zeroconf.zeroconf, _RESOLVE_WITHIN_S * SECOND_MS)
    if not info.port or not info.server:
        return None
    return Advertised(
        name=name.removesuffix(f".{SERVICE_TYPE}")[:_NAME_CHARS],
        port=info.port,
        addresses=tuple(info.parsed_addresses()[:_MOST_ADDRESSES]),
        host=info.server.rstrip("."),
    )
