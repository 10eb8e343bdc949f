"""What the memories on a PostgreSQL server hold of a person: those of one agent, and no other's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from common.person import Held, Trace
from modules.services.agent.memory.postgres_link import DEADLINE_S, Link

if TYPE_CHECKING:
    from modules.services.agent.memory.postgres_link import Cursor

_PAGE = 1000


class PostgresPeople:
    """Memories of `agent` that name a person or come from a conversation with them. Every call is one transaction.

    Raises:
        ConfigError: psycopg is not installed, or `url` is no address of a server.
        Transient: from each call: the server is out of reach.

    """

    def __init__(self, url: str, agent: str, *, deadline_s: float = DEADLINE_S) -> None:
        self._link = Link(url, deadline_s)
        self._agent = agent

    async def about(self, trace: Trace) -> Held:
        """Return these memories, the oldest first."""
        async with self._link.transaction() as cursor:
            theirs = await self._theirs(cursor, trace)
        return Held("server", len(theirs), tuple(f"{row['subject']}: {row['body']}" for row in theirs))

    async def bodies(self, trace: Trace) -> list[str]:
        """Return the bodies of these memories."""
        async with self._link.transaction() as cursor:
            return [str(row["body"]) for row in await self._theirs(cursor, trace)]

    async def forget(self, trace: Trace) -> int:
        """Delete these memories; return how many there were. A memory whose place one had taken stays replaced."""
        async with self._link.transaction() as cursor:
            ids = [row["id"] for row in await self._theirs(cursor, trace)]
            await cursor.execute(
                "UPDATE soul.memories SET superseded_by = id WHERE agent = %s AND superseded_by = ANY(%s)",
                (self._agent, ids),
            )
            await cursor.execute("DELETE FROM soul.memories WHERE agent = %s AND id = ANY(%s)", (self._agent, ids))
            return cursor.rowcount

    async def aclose(self) -> None:
        """Close the connection."""
        await self._link.aclose()

    async def _theirs(self, cursor: Cursor, trace: Trace) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        last = 0
        while True:
            await cursor.execute(
                "SELECT id, subject, body, tags, source FROM soul.memories WHERE agent = %s AND id > %s"
                " ORDER BY id LIMIT %s",
                (self._agent, last, _PAGE),
            )
            rows = await cursor.fetchall()
            found += [row for row in rows if _is_theirs(row, trace)]
            if len(rows) < _PAGE:
                return found
            last = rows[-1]["id"]


def _is_theirs(row: dict[str, Any], trace: Trace) -> bool:
    texts = (row["subject"], row["body"], row["source"], *row["tags"])
    return row["source"] in trace.sessions or trace.person.is_named_in(*texts)
