"""Who may open a connection to a room's server: foreign web pages may not, nor anybody without the token.

Pure, but for the counts of connections that `Crowd` keeps.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections import Counter
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit


class Crowd:
    """How many connections there are, in all and for each address."""

    def __init__(self, *, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()

    def enter(self, address: str) -> None:
        self._by_address[address] += 1

    def leave(self, address: str) -> None:
        self._by_address[address] -= 1
        self._by_address += Counter()

    def refusal(self, address: str) -> tuple[HTTPStatus, str] | None:
        """Why one who has entered must go again."""
        if self._by_address.total() > self._most:
            return HTTPStatus.SERVICE_UNAVAILABLE, "The room is full.\n"
        if self._by_address[address] > self._most_per_address:
            return HTTPStatus.TOO_MANY_REQUESTS, "Too many connections from your address.\n"
        return None

    @property
    def crushed(self) -> bool:
        """Whether so many have come that nobody can be told why not."""
        return self._by_address.total() > 2 * self._most


def refused_origin(origins: Collection[str], hosts: Collection[str], allowed: Collection[str]) -> bool:
    """Whether the `Origin` headers of a request show a web page that has no business here.

    No header: no browser. A page of the same host is welcome where that host is an address or a name of this network,
    for any other name may have been pointed here by whoever owns it.
    """
    if not origins:
        return False
    if len(origins) > 1 or len(hosts) != 1:
        return True
    (origin,), (host,) = origins, hosts
    if origin in allowed:
        return False
    theirs, ours = _hostname(origin), _hostname(f"//{host}")
    return not theirs or theirs != ours or not _is_local_name(ours)


def refused_token(path: str, token: str) -> bool:
    """Whether the request's `?token=` is not the one that is asked for; "" asks for none."""
    if not token:
        return False
    given = parse_qs(urlsplit(path).query).get("token", [])
    return len(given) != 1 or not hmac.compare_digest(given[0].encode(), token.encode())


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_local_name(host: str) -> bool:
    if "." not in host or host.endswith(".local"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
