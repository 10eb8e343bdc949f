"""Checks whether a room was opened for a SOUL that sleeps. One search serves all checks within half a minute."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from common.clock import Clock
from common.result import ApiResult, Ok

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
