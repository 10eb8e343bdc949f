"""Signs of life: the heartbeat line, and the watch over SOUL.md."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from common.constants import MINUTE_MS, SECOND_MS
from common.errors import PolicyBlocked, Transient
from modules.runtime.home import Home, SoulDocument, check_self
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.types import Loop, Outcome

HEARTBEAT_INTERVAL_MS = 5 * MINUTE_MS
IDENTITY_WATCH_INTERVAL_MS = 5 * SECOND_MS


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that each heartbeat does, with its name for the journal."""

    name: str
    run: Callable[[], Awaitable[object]]


@dataclass(slots=True)
class HeartbeatLoop(Loop):
    """Says regularly that the SOUL is alive, and how; does the `chores` first.

    A chore that fails with `PolicyBlocked` or `Transient` is journalled, and the next one is done.
    """

    name = "heartbeat"
    interval_ms = HEARTBEAT_INTERVAL_MS
    at_start = True

    journal: Journal
    situation: Callable[[], Awaitable[str]]
    chores: Sequence[Chore] = ()

    async def run(self) -> Outcome:
        for chore in self.chores:
            await self._do(chore)
        situation = await self.situation()
        await self.journal.record(Entry("life", self.name, f"♥ {situation}", line="sys"))
        return Outcome(ran=True, reason=situation)

    async def _do(self, chore: Chore) -> None:
        try:
            await chore.run()
        except (PolicyBlocked, Transient) as error:
            entry = Entry("error", self.name, f"The {chore.name} was not renewed", line="warn", reason=str(error))
            await self.journal.record(entry)


@dataclass(slots=True)
class IdentityWatchLoop(Loop):
    """Stops everything when SOUL.md is no longer what it was at start, or SELF.md can no longer be read."""

    name = "identity-watch"
    interval_ms = IDENTITY_WATCH_INTERVAL_MS
    jitter = 0.0

    soul: SoulDocument
    home: Home

    async def run(self) -> Outcome:
        self.soul.check()
        check_self(self.home)
        return Outcome(ran=True, reason="SOUL.md is unchanged")
