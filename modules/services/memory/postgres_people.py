"""What the memories on a PostgreSQL server hold of a person: those of one agent, and no other's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from common.errors import Transient
from common.person import SOMEBODY_DID, Held, Trace
from modules.services.memory.postgres_link import DEADLINE_S, PostgresLink

if TYPE_CHECKING:
    from modules.services.memory.postgres_link import Cursor

REWRITE_S = 120.0
"""So long the server may take to write the table anew, in seconds; others may want the table meanwhile."""

_PAGE = 1000
_LOCK_WAIT = "4s"
_PAUSE_S = 0.2
_ASK = "Ask whoever keeps the server of DATABASE_URL"
_OLDER = """
SELECT count(*) AS count FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL AND xact_start < %s
"""
_FILE = "SELECT pg_relation_filenode('soul.memories') AS file"


class PostgresPeople:
    """Memories of `agent` that rest on a person's words.

    Every call but `rewrite` is one transaction.

    Raises:
        ConfigError: psycopg is not installed, or `url` is no address of a server.
        Transient: from each call: the server is out of reach.

    """

    def __init__(self, url: str, agent: str, *, deadline_s: float = DEADLINE_S, rewrite_s: float = REWRITE_S) -> None:
        self._link = PostgresLink(url, deadline_s)
        self._agent = agent
        self._rewrite_s = rewrite_s

    async def about(self, trace: Trace) -> Held:
        """Return these memories, the oldest first."""
        async with self._link.transaction() as cursor:
            theirs = await self._theirs(cursor, trace)
        return Held("server", len(theirs), tuple(f"{row['subject']}: {row['body']}" for row in theirs))

    async def copies(self, trace: Trace) -> list[str]:
        """Return these memories: subject and body, with the end of a line between."""
        async with self._link.transaction() as cursor:
            return [f"{row['subject']}\n{row['body']}" for row in await self._theirs(cursor, trace)]

    async def forget(self, trace: Trace) -> int:
        """Delete these memories; return how many there were. A memory whose place one had taken stays replaced.

        Their bytes lie in the server's files until `rewrite`, which the server is told to be owed.
        """
        if not trace.person.did:
            return 0
        async with self._link.transaction() as cursor:
            ids = [row["id"] for row in await self._theirs(cursor, trace)]
            await cursor.execute(
                "UPDATE soul.memories SET superseded_by = id WHERE agent = %s AND superseded_by = ANY(%s)",
                (self._agent, ids),
            )
            await cursor.execute("DELETE FROM soul.memories WHERE agent = %s AND id = ANY(%s)", (self._agent, ids))
            await cursor.execute(
                "UPDATE soul.memories SET source = replace(source, %s, %s)"
                " WHERE agent = %s AND position(%s in source) > 0",
                (f"{trace.person.did}/", f"{SOMEBODY_DID}/", self._agent, f"{trace.person.did}/"),
            )
            if ids:
                await cursor.execute("INSERT INTO soul.rewrites VALUES (%s) ON CONFLICT DO NOTHING", (self._agent,))
            return len(ids)

    async def rewrite(self) -> bool:
        """Have the server write its table and indices anew if a deletion is owed that; return whether one was.

        A plain VACUUM frees pages and leaves their bytes. While a transaction of the same database is older than this
        call, the server keeps for it what was deleted: then that is waited for.

        Raises:
            Transient: it was not done, within `REWRITE_S`; it stays owed.

        """
        async with self._link.transaction() as cursor:
            await cursor.execute("SELECT clock_timestamp() AS now FROM soul.rewrites WHERE agent = %s", (self._agent,))
            owed = await cursor.fetchone()
        if owed is None:
            return False
        async with self._link.outside(self._rewrite_s) as cursor:
            await cursor.execute("SELECT set_config('lock_timeout', %s, false)", (_LOCK_WAIT,))
            while await _one(cursor, _OLDER, owed["now"]):  # noqa: ASYNC110 - the server tells nobody of it
                await asyncio.sleep(_PAUSE_S)
            before = await _one(cursor, _FILE)
            await cursor.execute("VACUUM (FULL) soul.memories")
            if await _one(cursor, _FILE) == before:
                raise Transient("PostgreSQL did not write soul.memories anew", remedy=f"{_ASK} to let us VACUUM it.")
            await cursor.execute("DELETE FROM soul.rewrites WHERE agent = %s", (self._agent,))
        return True

    async def aclose(self) -> None:
        """Close the connection."""
        await self._link.aclose()

    async def _theirs(self, cursor: Cursor, trace: Trace) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        last = 0
        while True:
            await cursor.execute(
                "SELECT id, subject, body, dids, source FROM soul.memories WHERE agent = %s AND id > %s"
                " ORDER BY id LIMIT %s",
                (self._agent, last, _PAGE),
            )
            rows = await cursor.fetchall()
            found += [row for row in rows if _is_theirs(row, trace)]
            if len(rows) < _PAGE:
                return found
            last = rows[-1]["id"]


async def _one(cursor: Cursor, query: str, *values: object) -> object:
    """Return the one value of the one row that a query gives."""
    await cursor.execute(query, values)
    row = await cursor.fetchone()
    return next(iter(row.values())) if row else None


def _is_theirs(row: dict[str, Any], trace: Trace) -> bool:
    """Return whether a row is tied to the person; one of an earlier version is by its conversation."""
    return trace.person.did in row["dids"] if row["dids"] else row["source"] in trace.sessions
