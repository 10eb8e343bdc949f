"""What a SOUL remembers, saved outside its database each day, and brought back when that had to begin afresh.

Snapshots lie in the store under `agents/{agent_id}/exports/`, one a day, the newest seven. A new database bears the
mark `recovery` once it is clear what came back; while it is not, no snapshot is written, so that an empty memory
cannot take the place of a full one. A kill in between costs nothing: bringing back is one transaction, and can be
repeated.
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
from common.clock import Clock, local
from common.errors import Fatal, SoulError, Transient
from common.result import Err
from modules.console import LineKind
from modules.database import Database
from modules.foreign_text import one_line
from modules.journal.journal import Journal
from modules.journal.types import Entry, EntryKind
from modules.memory.export import Restored, Snapshots

KEPT = 7

_MARK, _DAY, _STATE = "recovery", "snapshot_day", "snapshot_state"
_LOOP = "recovery"
_OUT_OF_REACH = "What was remembered cannot be brought back yet: the store is out of reach"
_LATER = {"transient", "auth"}
_RETRY_S = 3600.0
_ERROR_CHARS = 160
_LEAST_LINES = 2
"""The head, and something that it is the head of."""
_NAME = re.compile(r"memories-(\d{4}-\d{2}-\d{2})\.jsonl\.gz")


class _Damaged(Exception):
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
        """At start, before anything is remembered: bring back what is lost, if the database had to begin afresh."""
        if await self._mark(_MARK):
            return
        begun_afresh = bool(self._database.notice) or any(self._path.parent.glob(f"{self._path.name}.corrupt-*"))
        if begun_afresh:
            await self._bring_back()
        else:
            await self._set(_MARK, "not needed")

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
        kept = await self._storage.put(
            f"{self._folder}memories-{day}.jsonl.gz",
            packed,
            content_type="application/gzip",
            metadata={"lines": str(len(lines))},
        )
        if isinstance(kept, Err):
            self._later()
            await self._tell("warn", "The snapshot of what is remembered was not kept", kept.error)
            return False
        await self._set(_DAY, day)
        await self._set(_STATE, state)
        await self._forget_old()
        return True

    async def _bring_back(self) -> None:
        """The newest snapshot that can be read; while the store is out of reach it stays to be done."""
        listed = await self._storage.list(self._folder)
        if isinstance(listed, Err):
            self._later()
            await self._tell("error", _OUT_OF_REACH, listed.error)
            return
        damaged: list[str] = []
        for key in _newest_first(item.key for item in listed.data):
            found = await self._storage.get(key)
            if isinstance(found, Err):
                if found.kind in _LATER:
                    self._later()
                    await self._tell("error", _OUT_OF_REACH, found.error)
                    return
                damaged.append(f"{_day_of(key)} cannot be read ({found.error})")
                continue
            try:
                came = await self._take_in(found.data.data)
            except _Damaged as error:
                damaged.append(f"{_day_of(key)} is damaged ({error})")
                continue
            await self._set(_MARK, key)
            summary = f"From the snapshot of {_day_of(key)} came back: {came.memories} memories, {came.fields} fields"
            await self._tell("done", summary, "; ".join(damaged))
            return
        await self._set(_MARK, "nothing came back")
        await self._tell(
            "error", "Nothing of what was remembered came back", "; ".join(damaged) or "no snapshot is kept"
        )

    async def _take_in(self, packed: bytes) -> Restored:
        try:
            return await self._snapshots.restore(await asyncio.to_thread(_unpack, packed))
        except (Fatal, Transient):
            raise
        except (OSError, EOFError, zlib.error, ValueError, OverflowError, sqlite3.Error, SoulError) as error:
            raise _Damaged(one_line(str(error), _ERROR_CHARS)) from error

    async def _forget_old(self) -> None:
        listed = await self._storage.list(self._folder)
        if isinstance(listed, Err):
            return
        for key in _newest_first(item.key for item in listed.data)[KEPT:]:
            await self._storage.delete(key)

    def _later(self) -> None:
        self._not_before = self._clock.monotonic() + _RETRY_S

    async def _mark(self, name: str) -> str:
        def select(connection: sqlite3.Connection) -> str:
            row = connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else ""

        return await self._database.run(select)

    async def _set(self, name: str, value: str) -> None:
        def upsert(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

        await self._database.run(upsert)

    async def _tell(self, line: LineKind, summary: str, reason: str) -> None:
        kind: EntryKind = "life" if line == "done" else "error"
        await self._journal.record(Entry(kind, _LOOP, summary, line=line, reason=reason))

    def _today(self) -> str:
        return f"{local(self._clock.now(), self._timezone):%Y-%m-%d}"


def _newest_first(keys: Iterable[str]) -> list[str]:
    return sorted((key for key in keys if _day_of(key)), key=_day_of, reverse=True)


def _day_of(key: str) -> str:
    match = _NAME.fullmatch(key.rpartition("/")[2])
    return match[1] if match else ""


def _pack(lines: Sequence[str]) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def _unpack(packed: bytes) -> list[str]:
    # NOTE(self): not `splitlines`: what is remembered may hold other line ends, which JSON leaves as they are.
    lines = gzip.decompress(packed).decode().split("\n")
    if len(lines) < _LEAST_LINES:
        raise ValueError("it is empty")
    return lines
