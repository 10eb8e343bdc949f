"""Advertises a room in the local network: one mDNS service, `_agent-space._tcp`.

Reference members take the host of the URL from the service's target, so the target is a numeric LAN address with a
final dot, with an A record of that name for each address. Nothing is kept; after a kill the records expire within two
minutes.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable, Sequence
from contextlib import suppress
from socket import inet_aton

import ifaddr
from zeroconf import Error, IPVersion, NonUniqueNameException
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from adapters.space.browsing import SERVICE_TYPE
from common.constants import SPACE_DEFAULT_NAME
from common.result import ApiResult, Err, Ok
from common.version import __version__

_HOST_TTL_S = 120
_OTHER_TTL_S = 4_500
_DEADLINE_S = 10.0
_LABEL_BYTES = 63
_EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - asked about, not bound


def instance_label(name: str) -> str:
    """A room's name as one DNS label: dots become `-`, at most 63 bytes."""
    label = (name.strip() or SPACE_DEFAULT_NAME).replace(".", "-").encode()[:_LABEL_BYTES].decode(errors="ignore")
    return "".join(sign if sign.isprintable() else "-" for sign in label)


def lan_addresses(binds: Sequence[str]) -> tuple[str, ...]:
    """Returns the IPv4 addresses under which a server that listens on `binds` can be reached from the local network.

    Loopback is left out; link-local addresses (169.254.0.0/16) come last.
    """
    return reachable(binds, (str(ip.ip) for adapter in ifaddr.get_adapters() for ip in adapter.ips if ip.is_IPv4))


def reachable(binds: Sequence[str], addresses: Iterable[str]) -> tuple[str, ...]:
    """Returns those of a machine's IPv4 `addresses` that `binds` covers; as `lan_addresses`."""
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
        """Unregisters the service."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_DEADLINE_S):
                await (await self._zeroconf.async_unregister_service(self._info))
        await self._zeroconf.async_close()


async def advertise(name: str, port: int, binds: Sequence[str]) -> ApiResult[Advertisement]:
    """Registers a room in the local network.

    Args:
        name: of the room; another room of that name makes it `name-2`.
        port: where it listens.
        binds: the addresses it listens on.

    Returns:
        What to close in the end. `invalid`: nobody else could reach it, so nothing is sent. `transient`: mDNS does
        not work here; the room's URL does all the same.

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
    """The service of a room: target `<first address>.` with an A record for each, and its name and version."""
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
