"""Finds the room: the configured URL, else one advertised in the local network, else one on this machine.

A discovered room is in the local network, so only private, link-local and loopback addresses are accepted. The result
is the address that was checked, never a name that could resolve to another one a moment later. For SOULs that sleep
one search serves all checks within half a minute.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, TypeAlias

from common.constants import SPACE_DEFAULT_PORT
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.space.browsing import Advertised
from dataclasses import dataclass, field

from common.clock import Clock

PROBE_S: Final = 1.0

Address: TypeAlias = IPv4Address | IPv6Address
Browse: TypeAlias = "Callable[[], Awaitable[ApiResult[list[Advertised]]]]"
Notice: TypeAlias = Callable[[str, str], Awaitable[None]]

_RESOLVE_WITHIN_S = 3.0
_LOWEST_PORT = 1024
_MOST_PROBED = 8
# NOTE(self): addresses where clouds give a machine its secrets; in private ranges, but never a room.
_NEVER = frozenset(map(ip_address, ("169.254.169.254", "169.254.170.2", "fd00:ec2::254", "fd20:ce::254")))


async def _browse() -> ApiResult[list[Advertised]]:
    """Return the rooms that the local network advertises."""
    from adapters.space.browsing import browse  # noqa: PLC0415 - slow to import, and only needed here

    return await browse()


async def discover_space(
    *,
    space_url: str,
    discovery: bool = True,
    notice: Notice | None = None,
    browse_rooms: Browse = _browse,
    local_port: int = SPACE_DEFAULT_PORT,
    refused: Collection[str] = (),
) -> ApiResult[str]:
    """Return the URL of the room.

    Args:
        space_url: the configured URL, used unchanged; "" to search.
        discovery: whether to search at all.
        notice: informs the owner about what was seen but not used: message, detail.
        browse_rooms: returns what the local network advertises.
        local_port: the port of a room on this machine.
        refused: the URLs of rooms that did not accept this member, taken only if there is no other.

    Returns:
        `Ok` with a `ws://` URL, or `space_url`. `Err`: `not_found`, within about 15 s.

    """
    if space_url:
        return Ok(space_url)
    if not discovery:
        return Err("SPACE_URL is not set, and SPACE_DISCOVERY is off", "not_found")
    advertised, reached = await browse_rooms(), list[str]()
    if isinstance(advertised, Err):
        await _tell(notice, "No look around for agent spaces", advertised.error)
    else:
        spaces = sorted(advertised.data, key=lambda space: space.name)
        for place, space in enumerate(spaces):
            if (url := await _reached(space)) is None:
                await _tell(notice, "An agent space was advertised but not reached", space.name)
                continue
            reached.append(url)
            if url in refused:
                continue
            if others := spaces[place + 1 :]:
                names = ", ".join(other.name for other in others)
                await _tell(notice, "Several agent spaces; took the first by name", f"{space.name}, not {names}")
            return Ok(url)
    if await _answers("localhost", local_port):
        reached.append(f"ws://localhost:{local_port}")
    if url := next((one for one in reached if one not in refused), "") or next(iter(reached), ""):
        return Ok(url)
    return Err("nobody advertises one, and none is on this machine", "not_found")


def believable(addresses: Iterable[str]) -> list[Address]:
    """Return the acceptable addresses, best first: private IPv4, link-local, private IPv6, loopback."""
    ranked = [(rank, place, address) for place, address in enumerate(_parsed(addresses)) if (rank := _rank(address))]
    return list(dict.fromkeys(address for _, _, address in sorted(ranked, key=lambda one: one[:2])))


def _parsed(addresses: Iterable[str]) -> list[Address]:
    parsed: list[Address] = []
    for text in addresses:
        try:
            parsed.append(ip_address(text))
        except ValueError:
            continue
    return parsed


def _rank(address: Address) -> int:
    """Return 1 for the best, 0 for an unacceptable address. IPv6 link-local is useless without its interface."""
    if address in _NEVER or address.is_unspecified or address.is_multicast or not address.is_private:
        return 0
    if isinstance(address, IPv6Address):
        return 0 if address.is_link_local or address.ipv4_mapped else 4 if address.is_loopback else 3
    return 0 if address.is_reserved else 4 if address.is_loopback else 2 if address.is_link_local else 1


async def _reached(space: Advertised) -> str | None:
    """Return the URL of the best address of an advertised room that accepts connections, or None."""
    if space.port < _LOWEST_PORT:
        return None
    addresses = believable(space.addresses) or believable([space.host]) or believable(await _resolved(space.host))
    addresses = addresses[:_MOST_PROBED]
    answers = await asyncio.gather(*(_answers(str(address), space.port) for address in addresses))
    best = next((address for address, answered in zip(addresses, answers, strict=True) if answered), None)
    if best is None:
        return None
    return f"ws://[{best}]:{space.port}" if isinstance(best, IPv6Address) else f"ws://{best}:{space.port}"


async def _resolved(host: str) -> Sequence[str]:
    try:
        async with asyncio.timeout(_RESOLVE_WITHIN_S):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (TimeoutError, OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


async def _answers(host: str, port: int) -> bool:
    """Return whether a TCP connection is accepted within `PROBE_S`."""
    try:
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except (TimeoutError, OSError):
        return False
    writer.transport.abort()
    return True


async def _tell(notice: Notice | None, message: str, detail: str) -> None:
    if notice:
        await notice(message, detail)


_KEPT_S = 30.0


@dataclass(slots=True)
class RoomSearch:
    """Finds the room that a SOUL would find, with `discover`."""

    clock: Clock
    discover: Callable[[], Awaitable[ApiResult[str]]]
    _url: str = ""
    _until_s: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self) -> str:
        """Return the URL of the room; "" if there is none."""
        async with self._lock:
            if self.clock.monotonic() >= self._until_s:
                self._url = (await self.discover()).or_else("")
                self._until_s = self.clock.monotonic() + _KEPT_S
            return self._url


@dataclass(slots=True)
class RoomNewest:
    """Checks for one SOUL. `seen` is the room that was there when it fell asleep, as long as it is there."""

    search: RoomSearch
    service: str = "rooms"
    seen: dict[str, str] = field(default_factory=dict)
    slower: float = 1.0

    async def came(self) -> ApiResult[bool]:
        """Return whether a room can be found that was not there at the last look."""
        found = await self.search.find()
        before = self.seen.setdefault("room", found)
        if not found:
            self.seen["room"] = ""
        return Ok(found not in {"", before})
