"""What a SOUL remembers, saved outside its database each day, and brought back when that had to begin afresh.

Snapshots lie in the store under `agents/{agent_id}/exports/`, one a day, the newest seven. A new database bears the
mark `recovery` once it is clear what came back; while it is not, no snapshot is written, so that an empty memory
cannot take the place of a full one. Nor does a snapshot take the place of one that is much larger: it lies beside it.
A kill in between costs nothing: bringing back is one transaction, and can be repeated.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from adapters.storage.keys import agent_prefix
from adapters.storage.store import Storage
from adapters.storage.types import ObjectInfo
from common.clock import Clock, local
from common.errors import Fatal, SoulError, Transient
from common.json_lines import split_lines
from common.result import Err
from common.text.untrusted import one_line
from modules.runtime.console import LineKind
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry, EntryKind
from modules.services.memory.export import Restored, Snapshots

KEPT = 7
FORGOTTEN = "forgotten"
"""The file beside the database that says that its owner forgot on purpose: nothing is brought back."""

_MARK, _DAY, _STATE = "recovery", "snapshot_day", "snapshot_state"
SNAPSHOT_MARKS = (_DAY, _STATE)
"""Without these marks a new snapshot is written at the next heartbeat."""
_LOOP = "recovery"
_OUT_OF_REACH = "What was remembered cannot be brought back yet: the store is out of reach"
_LATER = {"transient", "auth"}
_RETRY_S = 3600.0
_ERROR_CHARS = 160
_LEAST_LINES = 2
"""The head, and something that it is the head of."""
_NAME = re.compile(r"memories-(\d{4}-\d{2}-\d{2})(?:\.(\d{1,4}))?\.jsonl\.gz")
_MUCH = 2
"""A snapshot that is so many times as large as another one holds much that the other does not."""


class _DamagedSnapshot(Exception):
    """A snapshot cannot be read."""


class Recovery:
    """Writes snapshots, and brings one back.

    Args:
        database: the one in use.
        path: where it lies; what was set aside lies beside it.
        storage: where snapshots go.
        agent_id: whose they are.
        snapshots: makes lines of what is known, and takes them in.
        journal: tells the owner.
        clock: says which day it is.
        timezone: of the SOUL's day.

    """

    def __init__(
        self,
        *,
        database: Database,
        path: Path,
        storage: Storage,
        agent_id: str,
        snapshots: Snapshots,
        journal: Journal,
        clock: Clock,
        timezone: str = "",
    ) -> None:
        self._database = database
        self._path = path
        self._storage = storage
        self._folder = f"{agent_prefix(agent_id)}exports/"
        self._snapshots = snapshots
        self._journal = journal
        self._clock = clock
        self._timezone = timezone
        self._not_before = clock.monotonic()

    async def wake(self) -> None:
        """At start, before anything is remembered: bring back what snapshots hold into a database that is new."""
        if await self._mark(_MARK):
            return
        forgotten = self._path.with_name(FORGOTTEN)
        if forgotten.exists():
            await self._set(_MARK, "forgotten on purpose")
            forgotten.unlink(missing_ok=True)
            return
        begun_afresh = bool(self._database.notice) or any(self._path.parent.glob(f"{self._path.name}.corrupt-*"))
        await self._bring_back(begun_afresh=begun_afresh)

    async def write_daily(self) -> None:
        """Once a day: a snapshot, and before that what is still to be brought back. After a fault, an hour later."""
        if self._clock.monotonic() < self._not_before:
            return
        await self.wake()
        if await self._mark(_DAY) != self._today():
            await self.write()

    async def write(self) -> bool:
        """A snapshot of now, in place of an earlier one of today; whether it was kept. What fails is told.

        Where nothing has changed since today's, that one is as good.
        """
        if not await self._mark(_MARK):
            return False
        day = self._today()
        state = f"{day} {await self._snapshots.state()}"
        if await self._mark(_STATE) == state:
            return True
        lines = await self._snapshots.snapshot_lines()
        if len(lines) < _LEAST_LINES:
            return False
        packed = await asyncio.to_thread(_pack, lines)
        listed = await self._storage.list(self._folder)
        if isinstance(listed, Err):
            return await self._not_kept(listed.error)
        kept = await self._storage.put(
            f"{self._folder}{_free_name(day, len(packed), listed.data)}",
            packed,
            content_type="application/gzip",
            metadata={"lines": str(len(lines))},
        )
        if isinstance(kept, Err):
            return await self._not_kept(kept.error)
        await self._set(_DAY, day)
        await self._set(_STATE, state)
        await self._forget_old()
        return True

    async def _not_kept(self, reason: str) -> bool:
        self._later()
        await self._tell("warn", "The snapshot of what is remembered was not kept", reason)
        return False

    async def _bring_back(self, *, begun_afresh: bool) -> None:
        """The newest snapshot that can be read, and older ones that are much larger.

        While the store is out of reach it stays to be done. Without `begun_afresh` nothing is lost for sure.
        """
        listed = await self._storage.list(self._folder)
        if isinstance(listed, Err):
            self._later()
            await self._tell("error" if begun_afresh else "warn", _OUT_OF_REACH, listed.error)
            return
        damaged: list[str] = []
        taken: list[ObjectInfo] = []
        memories, fields = 0, 0
        for item in _newest_first(listed.data):
            if taken and item.size < _MUCH * max(one.size for one in taken):
                continue
            found = await self._storage.get(item.key)
            if isinstance(found, Err):
                if found.kind in _LATER:
                    self._later()
                    await self._tell("error", _OUT_OF_REACH, found.error)
                    return
                damaged.append(f"{_day_of(item.key)} cannot be read ({found.error})")
                continue
            try:
                came = await self._take_in(found.data.data)
            except _DamagedSnapshot as error:
                damaged.append(f"{_day_of(item.key)} is damaged ({error})")
                continue
            taken.append(item)
            memories, fields = memories + came.memories, fields + came.fields
        if taken:
            await self._set(_MARK, taken[0].key)
            days = ", ".join(_day_of(one.key) for one in taken)
            summary = f"From the snapshot of {days} came back: {memories} memories, {fields} fields"
            await self._tell("done", summary, "; ".join(damaged))
        elif begun_afresh or damaged:
            await self._set(_MARK, "nothing came back")
            reason = "; ".join(damaged) or "no snapshot is kept"
            await self._tell("error", "Nothing of what was remembered came back", reason)
        else:
            await self._set(_MARK, "not needed")

    async def _take_in(self, packed: bytes) -> Restored:
        try:
            return await self._snapshots.restore(await asyncio.to_thread(_unpack, packed))
        except (Fatal, Transient):
            raise
        except (OSError, EOFError, zlib.error, ValueError, OverflowError, sqlite3.Error, SoulError) as error:
            raise _DamagedSnapshot(one_line(str(error), _ERROR_CHARS)) from error

    async def _forget_old(self) -> None:
        listed = await self._storage.list(self._folder)
        if isinstance(listed, Err):
            return
        ordered = _newest_first(listed.data)
        largest = max((item.size for item in ordered[:KEPT]), default=0)
        for item in ordered[KEPT:]:
            if item.size < _MUCH * largest:
                await self._storage.delete(item.key)

    def _later(self) -> None:
        self._not_before = self._clock.monotonic() + _RETRY_S

    async def _mark(self, name: str) -> str:
        return await self._database.run(lambda connection: marks.get(connection, name))

    async def _set(self, name: str, value: str) -> None:
        await self._database.run(lambda connection: marks.put(connection, {name: value}))

    async def _tell(self, line: LineKind, summary: str, reason: str) -> None:
        kind: EntryKind = "life" if line == "done" else "error"
        await self._journal.record(Entry(kind, _LOOP, summary, line=line, reason=reason))

    def _today(self) -> str:
        return f"{local(self._clock.now(), self._timezone):%Y-%m-%d}"


def _newest_first(items: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """The snapshots among `items`; of several of one day the last first."""
    return sorted((item for item in items if _day_of(item.key)), key=lambda item: _place_of(item.key), reverse=True)


def _free_name(day: str, size: int, there: Iterable[ObjectInfo]) -> str:
    """The name for a snapshot of `day`: that of the day's last one, unless that one is much larger."""
    last = next((item for item in _newest_first(there) if _day_of(item.key) == day), None)
    if last is None:
        return f"memories-{day}.jsonl.gz"
    if last.size < _MUCH * size:
        return last.key.rpartition("/")[2]
    return f"memories-{day}.{_place_of(last.key)[1] + 1}.jsonl.gz"


def _day_of(key: str) -> str:
    return _place_of(key)[0]


def _place_of(key: str) -> tuple[str, int]:
    """The day of a snapshot, and its number among those of that day; "" for what is no snapshot."""
    match = _NAME.fullmatch(key.rpartition("/")[2])
    return (match[1], int(match[2] or 0)) if match else ("", 0)


def _pack(lines: Sequence[str]) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _unpack(packed: bytes) -> list[str]:
    lines = split_lines(gzip.decompress(packed).decode())
    if len(lines) < _LEAST_LINES:
        raise ValueError("it is empty")
    return lines
