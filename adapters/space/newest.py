"""Looks whether a room was opened for a SOUL that sleeps. One search serves all that look within half a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from common.clock import Clock
from common.result import ApiResult, Ok

_KEPT_S = 30.0


@dataclass(slots=True)
class RoomSearch:
    """Finds the room that a SOUL would find, by `discover`."""

    clock: Clock
    discover: Callable[[], Awaitable[ApiResult[str]]]
    _url: str = ""
    _until_s: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self) -> str:
        """Return its address; "" where there is none."""
        async with self._lock:
            if self.clock.monotonic() >= self._until_s:
                self._url = (await self.discover()).or_else("")
                self._until_s = self.clock.monotonic() + _KEPT_S
            return self._url


@dataclass(slots=True)
class RoomNewest:
    """Looks for one SOUL. `seen` is the room that was there when it fell asleep, and is there still."""

    search: RoomSearch
    service: str = "rooms"
    seen: dict[str, str] = field(default_factory=dict)
    slower: float = 1.0

    async def came(self) -> ApiResult[bool]:
        """Return whether a room can be found that was not there at the look before."""
        found = await self.search.find()
        before = self.seen.setdefault("room", found)
        if not found:
            self.seen["room"] = ""
        return Ok(found not in {"", before})
