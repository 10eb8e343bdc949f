"""Advertises a room in the local network and browses for advertised ones, by multicast DNS (`_agent-space._tcp`).

Anybody in that network may advertise anything, so only hosts and ports are used, and few of them. Nothing is kept.
"""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from socket import inet_aton
from typing import Final

import ifaddr
from zeroconf import Error, IPVersion, NonUniqueNameException, ServiceListener, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from common.constants import SECOND_MS, SPACE_DEFAULT_NAME
from common.result import ApiResult, Err, Ok
from common.version import __version__

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
        port: the TCP port.
        addresses: as text, IPv4 first; may be empty.
        host: the target of its service record: a name, or an address written as one.

    """

    name: str
    port: int
    addresses: tuple[str, ...]
    host: str


async def browse(*, within_s: float = BROWSE_S, gather_s: float = GATHER_S) -> ApiResult[list[Advertised]]:
    """Return the rooms that answered within `gather_s` of the first, by name; none if none answered in `within_s`.

    An `Err` (transient) means that multicast DNS does not work on this machine.
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
    except (OSError, Error) as error:
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
        """Wait until some time after the first answer, or until there was none within `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._first.wait()
        except TimeoutError:
            return
        await asyncio.sleep(gather_s)

    def stop(self) -> None:
        """Cancel the pending lookups."""
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
    try:
        info = AsyncServiceInfo(SERVICE_TYPE, name)
        # NOTE(self): False also if only addresses are missing; the name of the host may be enough.
        await info.async_request(zeroconf.zeroconf, _RESOLVE_WITHIN_S * SECOND_MS)
    except Error:  # a name that no service may have, such as one with a control character
        return None
    if not info.port or not info.server:
        return None
    return Advertised(
        name=name.removesuffix(f".{SERVICE_TYPE}")[:_NAME_CHARS],
        port=info.port,
        addresses=tuple(info.parsed_addresses()[:_MOST_ADDRESSES]),
        host=info.server.rstrip("."),
    )


_HOST_TTL_S = 120
_OTHER_TTL_S = 4_500
_DEADLINE_S = 10.0
_LABEL_BYTES = 63
_EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - compared, not bound


def instance_label(name: str) -> str:
    """Return a room's name as one DNS label: dots become `-`, at most 63 bytes."""
    label = (name.strip() or SPACE_DEFAULT_NAME).replace(".", "-").encode()[:_LABEL_BYTES].decode(errors="ignore")
    return "".join(sign if sign.isprintable() else "-" for sign in label)


def lan_addresses(binds: Sequence[str]) -> tuple[str, ...]:
    """Return the IPv4 addresses at which a server that listens on `binds` can be reached from the local network.

    Loopback is left out; link-local addresses (169.254.0.0/16) come last.
    """
    return reachable(binds, (str(ip.ip) for adapter in ifaddr.get_adapters() for ip in adapter.ips if ip.is_IPv4))


def reachable(binds: Sequence[str], addresses: Iterable[str]) -> tuple[str, ...]:
    """Return those of a machine's IPv4 `addresses` that `binds` covers; order as in `lan_addresses`."""
    own = [ipaddress.IPv4Address(address) for address in dict.fromkeys(addresses)]
    seen = [ip for ip in own if not ip.is_loopback and (str(ip) in binds or _EVERYWHERE & set(binds))]
    return tuple(str(ip) for ip in sorted(seen, key=lambda ip: ip.is_link_local))


class Advertisement:
    """A registered service. `url` is the address for other machines."""

    def __init__(self, zeroconf: AsyncZeroconf, info: AsyncServiceInfo, url: str) -> None:
        self._zeroconf = zeroconf
        self._info = info
        self.url = url

    @property
    def name(self) -> str:
        """The registered instance name, which differs from the requested one if that was taken."""
        return self._info.name.removesuffix(f".{SERVICE_TYPE}")

    async def close(self) -> None:
        """Unregister the service."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DEADLINE_S):
                await (await self._zeroconf.async_unregister_service(self._info))
        await self._zeroconf.async_close()


async def advertise(name: str, port: int, binds: Sequence[str]) -> ApiResult[Advertisement]:
    """Register a room in the local network.

    Args:
        name: the name of the room; if another room has it, it becomes `name-2`.
        port: the port it listens on.
        binds: the addresses it listens on.

    Returns:
        The advertisement, to be closed in the end. `invalid`: nobody else could reach the room, so nothing is sent.
            `transient`: mDNS does not work here; the room can still be reached by its URL.

    """
    addresses = lan_addresses(binds)
    if not addresses:
        return Err("The room listens on this machine only: it is not advertised", "invalid")
    info = service_info(name, port, addresses)
    zeroconf: AsyncZeroconf | None = None
    try:
        zeroconf = AsyncZeroconf(interfaces=list(addresses), ip_version=IPVersion.V4Only)
        async with asyncio.timeout(_DEADLINE_S):
            await (await zeroconf.async_register_service(info, allow_name_change=True))
    except (OSError, Error, TimeoutError) as error:
        if zeroconf is not None:
            await zeroconf.async_close()
        why = "its name is taken" if isinstance(error, NonUniqueNameException) else str(error) or type(error).__name__
        return Err(f"The room is not advertised by mDNS: {why}", "transient")
    return Ok(Advertisement(zeroconf, info, f"ws://{addresses[0]}:{port}"))


def service_info(name: str, port: int, addresses: Sequence[str]) -> AsyncServiceInfo:
    """Return the service of a room: target `<first address>.` with an A record for each, its name and version."""
    return AsyncServiceInfo(
        SERVICE_TYPE,
        f"{instance_label(name)}.{SERVICE_TYPE}",
        port=port,
        properties={"v": __version__, "name": name[:200]},
        server=f"{addresses[0]}.",
        addresses=[inet_aton(address) for address in addresses],
        host_ttl=_HOST_TTL_S,
        other_ttl=_OTHER_TTL_S,
    )
