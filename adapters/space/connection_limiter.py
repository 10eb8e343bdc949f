"""Admission to a room's server: limits of connections, allowed web origins, the token.

Pure, except for the counts that `ConnectionLimiter` and `RepeatedWarnings` keep in memory.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from cachetools import LRUCache

from adapters.space.room_allowance import Bucket

TOLD_EVERY_S = 60.0
MAX_ATTEMPTS = 256
ATTEMPTS_A_SECOND = 4.0
_MOST_ADDRESSES = 4_096


class ConnectionLimiter:
    """Counts open connections in all and by address, and limits how often an address may connect."""

    def __init__(self, *, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()
        self._attempts = LRUCache[str, Bucket](_MOST_ADDRESSES)

    def enter(self, address: str) -> None:
        self._by_address[address] += 1

    def leave(self, address: str) -> None:
        self._by_address[address] -= 1
        self._by_address += Counter()

    def refusal(self, address: str, now: float) -> tuple[HTTPStatus, str] | None:
        """Returns the response that refuses a connection counted by `enter`, or None. `now` is monotonic s."""
        if self._by_address.total() > self._most:
            return HTTPStatus.SERVICE_UNAVAILABLE, "The room is full.\n"
        if self._by_address[address] > self._most_per_address:
            return HTTPStatus.TOO_MANY_REQUESTS, "Too many connections from your address.\n"
        if not self._take_attempt(address, now):
            return HTTPStatus.TOO_MANY_REQUESTS, "Your address connects too often.\n"
        return None

    def _take_attempt(self, address: str, now: float) -> bool:
        return self._attempts.setdefault(address, Bucket(MAX_ATTEMPTS, ATTEMPTS_A_SECOND)).take(1, now)

    @property
    def is_overloaded(self) -> bool:
        """Whether there are so many connections that even refusing them by a response costs too much."""
        return self._by_address.total() > 2 * self._most


class RepeatedWarnings:
    """Limits log lines that remote peers can cause: each kind is logged at once, and then counted for a minute."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[float, int]] = {}

    def admit_line(self, kind: str, now: float) -> bool:
        """Counts a line of this kind; returns whether to log it now. Times are monotonic s."""
        since, count = self._counted.get(kind, (now, -1))
        self._counted[kind] = since, count + 1
        return count < 0

    def due(self, now: float) -> list[tuple[str, int]]:
        """Returns the kinds whose minute is over, with the number of repetitions in it."""
        over = [(kind, count) for kind, (since, count) in self._counted.items() if now - since >= TOLD_EVERY_S]
        for kind, count in over:
            if count:
                self._counted[kind] = now, 0
            else:
                del self._counted[kind]
        return [(kind, count) for kind, count in over if count]


def refused_origin(origins: Collection[str], allowed: Collection[str]) -> bool:
    """Returns whether the `Origin` headers of a request name a web page that may not join. No header: no browser."""
    return bool(origins) and (len(origins) > 1 or not set(origins) <= set(allowed))


def refused_token(path: str, token: str) -> bool:
    """Returns whether the `?token=` of a request is wrong. An empty `token` requires none."""
    if not token:
        return False
    given = parse_qs(urlsplit(path).query).get("token", [])
    return len(given) != 1 or not hmac.compare_digest(given[0].encode(), token.encode())
