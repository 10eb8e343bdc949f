"""What one SOUL remembers, in its soul.db. Everything that has returned is on the disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from datetime import datetime

from common.clock import iso
from modules.runtime.database.database import Database
from modules.services.memory.rows import fetch, history, newest, of_person, remember
from modules.services.memory.search import search
from modules.services.memory.types import Kind, Memory, NewMemory, Query

__all__ = ["MemoryStore", "remember"]


class MemoryStore:
    """The memories of one SOUL. Every method is one transaction; the caller opens and closes the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, new: NewMemory, now: datetime) -> int:
        """Keep a memory and return its id. The same words refresh a row; others of the same subject replace it."""
        return (await self.save_all([new], now))[0]

    async def save_all(self, memories: Sequence[NewMemory], now: datetime) -> list[int]:
        """Keep all of them, or none."""
        return await self._database.run(lambda rows: [remember(rows, new, now) for new in memories])

    async def search(self, query: Query, now: datetime) -> list[Memory]:
        """Return living entries, best first; the newest where the query has no text."""
        return await self._database.run(lambda rows: search(rows, query, now))

    async def of_person(self, did: str, limit: int, *, public_only: bool) -> list[Memory]:
        """Return living entries that rest on the words of an account, newest first."""
        return await self._database.run(lambda rows: of_person(rows, did, limit, public_only=public_only))

    async def get(self, memory_id: int) -> Memory | None:
        """Return one entry, living or not."""
        return await self._database.run(lambda rows: next(iter(fetch(rows, [memory_id])), None))

    async def history(self, memory_id: int) -> list[Memory]:
        """Return all that ever stood under the same kind and subject, newest first."""
        return await self._database.run(lambda rows: history(rows, memory_id))

    async def recalled(self, ids: Collection[int], now: datetime) -> None:
        """Count that these memories were shown to a model."""

        def count(rows: sqlite3.Connection) -> None:
            rows.execute(
                "UPDATE memories SET last_recalled_at = ?, recall_count = recall_count + 1"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (iso(now), json.dumps(list(ids))),
            )

        await self._database.run(count)

    async def retire(self, memory_id: int, now: datetime) -> bool:
        """Hide an entry from searches, its own id standing for a successor; it stays in the history."""

        def retire(rows: sqlite3.Connection) -> bool:
            retired = rows.execute(
                "UPDATE memories SET superseded_by = id, updated_at = ? WHERE id = ? AND superseded_by IS NULL",
                (iso(now), memory_id),
            )
            return retired.rowcount > 0

        return await self._database.run(retire)

    async def listed(
        self,
        *,
        kinds: Collection[Kind] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        public_only: bool = False,
        limit: int = 1000,
    ) -> list[Memory]:
        """Return living entries by when they were updated, newest first."""
        return await self._database.run(
            lambda rows: newest(rows, kinds=kinds, since=since, until=until, public_only=public_only, limit=limit)
        )

    async def count(self) -> int:
        """Return the number of living entries."""
        return await self._database.run(
            lambda rows: int(rows.execute("SELECT count(*) FROM memories WHERE superseded_by IS NULL").fetchone()[0])
        )
