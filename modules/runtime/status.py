"""What the SOUL is doing right now, in one file that others may read: `soul status`, the town's page, a monitor.

Written atomically, at most once a second; a missing or stale file means that nobody is awake.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from common.clock import Clock, iso
from common.errors import MachineTrouble, Transient
from common.files import write_atomic
from common.version import __version__
from modules.runtime.scheduler.scheduler import LoopState

_MIN_WRITE_GAP_S = 1.0


@dataclass(slots=True)
class StatusBoard:
    """Writes the file after each change. `facts` returns the other fields."""

    path: Path
    clock: Clock
    name: str
    mode: Callable[[], str]
    loops: Callable[[], list[LoopState]]
    facts: Callable[[], Awaitable[dict[str, Any]]]
    latest: Mapping[str, Any] = field(default_factory=dict, init=False)
    """What the file holds; nothing before the first write."""
    _started: datetime = field(init=False)
    _dirty: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.now()

    def changed(self) -> None:
        """Something moved; the file will follow within a second."""
        self._dirty.set()

    async def keep_writing(self) -> None:
        """Write after each change, until cancelled."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self.write("running")
            except (MachineTrouble, Transient):
                self._dirty.set()  # briefly out of reach, or no room; the next second will do
            await self.clock.sleep(_MIN_WRITE_GAP_S)

    async def write(self, state: str) -> None:
        """Write now; `state` is running or stopped. Raises `StorageError`."""
        content = {
            "name": self.name,
            "pid": os.getpid(),
            "version": __version__,
            "state": state,
            "startedAt": iso(self._started),
            "updatedAt": iso(self.clock.now()),
            "mode": self.mode(),
            "loops": [_loop(item) for item in self.loops()],
            **await self.facts(),
        }
        self.latest = content
        write_atomic(self.path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _loop(item: LoopState) -> dict[str, Any]:
    return {
        "name": item.name,
        "running": item.running,
        "nextAt": _iso(item.next_at),
        "lastRanAt": _iso(item.last_ran_at),
        "lastOutcome": item.last_outcome,
    }


def _iso(moment: datetime | None) -> str | None:
    return iso(moment) if moment else None
