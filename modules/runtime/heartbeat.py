"""Signs of life: the heartbeat line, and the watch over SOUL.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from common.constants import HEARTBEAT_INTERVAL_MS, IDENTITY_WATCH_INTERVAL_MS, TIMER_JITTER_PERCENT
from modules.runtime.home import SoulDocument
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Outcome


@dataclass(slots=True)
class HeartbeatLoop:
    """Says regularly that the SOUL is alive, and how; tidies what has grown old."""

    journal: Journal
    situation: Callable[[], Awaitable[str]]
    tidy: Callable[[], Awaitable[None]]
    name: str = "heartbeat"
    interval_ms: float = HEARTBEAT_INTERVAL_MS
    jitter: float = TIMER_JITTER_PERCENT
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = True

    async def run(self) -> Outcome:
        await self.tidy()
        situation = await self.situation()
        await self.journal.record(Entry("life", self.name, f"♥ {situation}", line="sys"))
        return Outcome(ran=True, reason=situation)


@dataclass(slots=True)
class IdentityWatchLoop:
    """Stops everything when SOUL.md is no longer what it was at start."""

    soul: SoulDocument
    name: str = "identity-watch"
    interval_ms: float = IDENTITY_WATCH_INTERVAL_MS
    jitter: float = 0.0
    needs_idle: bool = False
    social_only: bool = True
    at_start: bool = False

    async def run(self) -> Outcome:
        self.soul.check()
        return Outcome(ran=True, reason="SOUL.md is unchanged")
