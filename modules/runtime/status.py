"""Signs of life: the stages of a start, the status file, the heartbeat line, systemd, and the watch over SOUL.md.

The file is written atomically, at most once a second; a missing or stale file means that nobody is awake.
"""

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

from common.clock import Clock, iso
from common.constants import MINUTE_MS, SECOND_MS
from common.errors import MachineTrouble, PolicyBlocked, Transient
from common.files import write_atomic
from common.version import __version__
from modules.runtime.home import Home, SoulDocument, check_self
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.runtime.scheduler.scheduler import LoopState


class Stage(IntEnum):
    """The stages of a life, in the order in which they are reached; a life never goes back to an earlier one."""

    BUILT = 0
    LOGGED_IN = 1
    CHECKED = 2
    SETTLED = 3


class Stages:
    """The current stage of one life. Each stage is reached only from the one before it."""

    def __init__(self) -> None:
        self._stage = Stage.BUILT
        self._reached = {stage: asyncio.Event() for stage in Stage}
        self._reached[Stage.BUILT].set()

    def has_reached(self, stage: Stage) -> bool:
        return self._stage >= stage

    def reach(self, stage: Stage) -> None:
        """Go on to `stage`; do nothing if it is reached already. Raises `RuntimeError` if a stage would be skipped."""
        if stage <= self._stage:
            return
        if stage != self._stage + 1:
            message = f"{stage.name} cannot be reached from {self._stage.name}"
            raise RuntimeError(message)
        self._stage = stage
        self._reached[stage].set()

    async def wait_for(self, stage: Stage) -> None:
        """Wait until `stage` is reached."""
        await self._reached[stage].wait()


_ALIVE = b"WATCHDOG=1"
_PER_TERM = 3
"""How many reports are sent within the time that the supervisor allows."""


async def keep_watched(clock: Clock) -> None:
    """Report until cancelled; return at once if no supervisor asks for it."""
    address, term_us = os.environ.get("NOTIFY_SOCKET", ""), os.environ.get("WATCHDOG_USEC", "")
    if not address or not term_us.isdecimal():
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"  # an abstract socket, which has no file
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.settimeout(0)
        while True:
            with suppress(OSError):  # the supervisor notices that no report comes
                supervisor.sendto(_ALIVE, address)
            await clock.sleep(int(term_us) / 1_000_000 / _PER_TERM)


HEARTBEAT_INTERVAL_MS = 5 * MINUTE_MS
IDENTITY_WATCH_INTERVAL_MS = 5 * SECOND_MS


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that each heartbeat does, with its name for the journal."""

    name: str
    run: Callable[[], Awaitable[object]]


@dataclass(slots=True)
class HeartbeatLoop(Loop):
    """Reports regularly that the SOUL is alive, and its state; does the `chores` first.

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
    """Stops the SOUL if SOUL.md has changed since the start, or SELF.md can no longer be read."""

    name = "identity-watch"
    interval_ms = IDENTITY_WATCH_INTERVAL_MS
    jitter = 0.0

    soul: SoulDocument
    home: Home

    async def run(self) -> Outcome:
        self.soul.check()
        check_self(self.home)
        return Outcome(ran=True, reason="SOUL.md is unchanged")


_MIN_WRITE_GAP_S = 1.0


@dataclass(slots=True)
class StatusBoard:
    """Writes the status file after each change. `facts` returns the other fields."""

    path: Path
    clock: Clock
    name: str
    mode: Callable[[], str]
    loops: Callable[[], list[LoopState]]
    facts: Callable[[], Awaitable[dict[str, Any]]]
    latest: Mapping[str, Any] = field(default_factory=dict, init=False)
    """The content of the file; empty before the first write."""
    _started: datetime = field(init=False)
    _dirty: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.now()

    def changed(self) -> None:
        """Note a change; the file follows within a second."""
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
        """Write the file now; `state` is `running` or `stopped`. Raises `StorageError`."""
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
