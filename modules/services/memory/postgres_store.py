"""What a fleet of SOULs remembers, on one PostgreSQL server: each row says whose it is, and no SOUL sees another's.

By the same rules as in SQLite (`policy`, `ranking`). Saving of one agent happens one at a time, by a lock that ends
with its transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from common.clock import iso, parse_iso
from common.text.unspaced import index_tokens, without_runs
from modules.services.memory import policy, ranking
from modules.services.memory.postgres_link import DEADLINE_S, PostgresLink
from modules.services.memory.postgres_search import PostgresSearch
from modules.services.memory.query import asked_folded, folded
from modules.services.memory.types import PRIVATE_KINDS, Kind, Memory, NewMemory, Query

if TYPE_CHECKING:
    from modules.services.memory.postgres_link import Cursor

_COLUMNS = (
    "id, kind, subject, body, tags, importance, source, trust, private, created_at, updated_at, last_recalled_at,"
    " recall_count, superseded_by, dids"
)
_INDEXED = "to_tsvector('soul.words', %s) || %s::tsvector"
_SPLIT_AT_ONCE = 200
_WORDS_MAX = 100_000
_PLACE_MAX = 16_000
_SAVING = 0x53


class PostgresMemories:
    """A `MemoryStore` of one `agent` on the server at `url`, which is asked for the first time when it is needed.

    Raises:
        ConfigError: psycopg is not installed, or `url` is no address of a server.

    """

    def __init__(self, url: str, agent: str, *, deadline_s: float = DEADLINE_S) -> None:
        self._link = PostgresLink(url, deadline_s)
        self._agent = agent
        # NOTE(self): no word has this form: the index finds an agent's rows, and words of theirs, in one step.
        self._all_split = False
        self._mine = f"@{hashlib.blake2b(agent.encode(), digest_size=8).hexdigest()}"

    async def save(self, new: NewMemory, now: datetime) -> int:
        return (await self.save_all([new], now))[0]

    async def save_all(self, memories: Sequence[NewMemory], now: datetime) -> list[int]:
        entries = [policy.entry(new) for new in memories]
        async with self._link.transaction() as cursor:
            await self._lock_saving(cursor)
            return [await self._remember(cursor, entry, now) for entry in entries]

    async def search(self, query: Query, now: datetime) -> list[Memory]:
        limit = ranking.within(query.limit)
        if query.public_only and query.kinds and PRIVATE_KINDS.issuperset(query.kinds):
            return []
        if not any(asked_folded(query.text)):
            return await self.listed(kinds=query.kinds, since=query.since, public_only=query.public_only, limit=limit)
        while await self._split_older():
            pass
        async with self._link.transaction() as cursor:
            ids = await PostgresSearch(cursor, self._agent, f"'{self._mine}'", query, now).best(limit)
            return await self._fetch(cursor, ids)

    async def of_person(self, did: str, limit: int, *, public_only: bool) -> list[Memory]:
        living = "superseded_by IS NULL AND %(did)s = ANY(dids) AND NOT (private AND %(public)s)"
        order = " ORDER BY updated_at DESC, id DESC LIMIT %(limit)s"
        return await self._select(living + order, did=did, public=public_only, limit=limit)

    async def get(self, memory_id: int) -> Memory | None:
        async with self._link.transaction() as cursor:
            return next(iter(await self._fetch(cursor, [memory_id])), None)

    async def history(self, memory_id: int) -> list[Memory]:
        return await self._select(
            "(kind, md5(subject_key), subject_key) ="
            " (SELECT kind, md5(subject_key), subject_key FROM soul.memories WHERE agent = %(agent)s AND id = %(id)s)"
            " AND (subject_key <> '' OR id = %(id)s) ORDER BY id DESC",
            id=memory_id,
        )

    async def recalled(self, ids: Collection[int], now: datetime) -> None:
        async with self._link.transaction() as cursor:
            await cursor.execute(
                "UPDATE soul.memories SET last_recalled_at = %s, recall_count = recall_count + 1"
                " WHERE agent = %s AND id = ANY(%s)",
                (_kept(now), self._agent, list(ids)),
            )

    async def retire(self, memory_id: int, now: datetime) -> bool:
        """As the protocol says: what was retired has its own id where others have that of their successor."""
        async with self._link.transaction() as cursor:
            await cursor.execute(
                "UPDATE soul.memories SET superseded_by = id, updated_at = %s"
                " WHERE agent = %s AND id = %s AND superseded_by IS NULL",
                (_kept(now), self._agent, memory_id),
            )
            return cursor.rowcount > 0

    async def listed(
        self,
        *,
        kinds: Collection[Kind] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        public_only: bool = False,
        limit: int = 1000,
    ) -> list[Memory]:
        where = [
            "superseded_by IS NULL",
            *(["kind = ANY(%(kinds)s)"] if kinds else []),
            *(["updated_at >= %(since)s"] if since else []),
            *(["updated_at < %(until)s"] if until else []),
            *(["NOT private"] if public_only else []),
        ]
        return await self._select(
            f"{' AND '.join(where)} ORDER BY updated_at DESC, id DESC LIMIT %(limit)s",
            kinds=list(kinds),
            since=since and _kept(since),
            until=until and _kept(until),
            limit=limit,
        )

    async def count(self) -> int:
        async with self._link.transaction() as cursor:
            await cursor.execute(
                "SELECT count(*) AS n FROM soul.memories WHERE agent = %s AND superseded_by IS NULL", (self._agent,)
            )
            return int((await cursor.fetchall())[0]["n"])

    async def aclose(self) -> None:
        """Close the connection."""
        await self._link.aclose()

    async def _lock_saving(self, cursor: Cursor) -> None:
        await cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_SAVING, self._agent))

    async def _remember(self, cursor: Cursor, entry: policy.MemoryEntry, now: datetime) -> int:
        memory_id = await self._repeat(cursor, entry, now) or await self._insert(cursor, entry, now)
        if trusts := policy.may_replace(entry):
            await cursor.execute(
                "UPDATE soul.memories SET superseded_by = %s WHERE agent = %s AND kind = %s"
                " AND md5(subject_key) = md5(%s) AND subject_key = %s AND superseded_by IS NULL AND id <> %s"
                " AND trust = ANY(%s)",
                (
                    memory_id,
                    self._agent,
                    entry.kind,
                    entry.subject_key,
                    entry.subject_key,
                    memory_id,
                    list(trusts),
                ),
            )
        return memory_id

    async def _repeat(self, cursor: Cursor, entry: policy.MemoryEntry, now: datetime) -> int | None:
        await cursor.execute(
            "SELECT id, subject_key, trust FROM soul.memories WHERE agent = %s AND body_hash = %s AND kind = %s"
            " AND superseded_by IS NULL AND (subject_key = %s OR trust = ANY(%s))"
            " ORDER BY subject_key = %s DESC, id DESC LIMIT 1",
            (
                self._agent,
                entry.body_hash,
                entry.kind,
                entry.subject_key,
                list(policy.may_lend_its_subject(entry)),
                entry.subject_key,
            ),
        )
        row = await cursor.fetchone()
        if row is None or not policy.same(entry, row["subject_key"], row["trust"]):
            return None
        after = policy.refreshed((await self._fetch(cursor, [row["id"]]))[0], entry, now)
        await cursor.execute(
            "UPDATE soul.memories SET updated_at = %s, subject = %s, body = %s, tags = %s, importance = %s,"  # noqa: S608 - constants
            f" source = %s, trust = %s, private = %s, dids = %s, words = {_INDEXED} WHERE id = %s",
            (
                parse_iso(after.updated_at),
                after.subject,
                after.body,
                list(after.tags),
                after.importance,
                after.source,
                after.trust,
                after.private,
                list(after.dids),
                *self._indexed(after.subject, after.body, after.tags),
                after.id,
            ),
        )
        return after.id

    async def _insert(self, cursor: Cursor, entry: policy.MemoryEntry, now: datetime) -> int:
        await cursor.execute(
            "INSERT INTO soul.memories (agent, created_at, updated_at, kind, subject, body, tags, source, trust,"  # noqa: S608 - constants
            " private, importance, subject_key, body_hash, dids, words)"
            f" VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {_INDEXED}) RETURNING id",
            (
                self._agent,
                _kept(now),
                _kept(now),
                entry.kind,
                entry.subject,
                entry.body,
                list(entry.tags),
                entry.source,
                entry.trust,
                entry.private,
                entry.importance,
                entry.subject_key,
                entry.body_hash,
                list(entry.dids),
                *self._indexed(entry.subject, entry.body, entry.tags),
            ),
        )
        return int((await cursor.fetchall())[0]["id"])

    async def _fetch(self, cursor: Cursor, ids: Sequence[int]) -> list[Memory]:
        """The rows with these ids, in this order; what is not there is left out."""
        await cursor.execute(
            f"SELECT {_COLUMNS} FROM soul.memories WHERE agent = %s AND id = ANY(%s)",  # noqa: S608 - constants
            (self._agent, list(ids)),
        )
        found = {row["id"]: _memory_of(row) for row in await cursor.fetchall()}
        return [found[memory_id] for memory_id in ids if memory_id in found]

    async def _select(self, where: str, **values: object) -> list[Memory]:
        async with self._link.transaction() as cursor:
            await cursor.execute(
                f"SELECT {_COLUMNS} FROM soul.memories WHERE agent = %(agent)s AND {where}",  # noqa: S608 - constants
                {**values, "agent": self._agent},
            )
            return [_memory_of(row) for row in await cursor.fetchall()]

    def _indexed(self, subject: str, body: str, tags: Sequence[str]) -> tuple[str, str]:
        """What the index is made of: see `_INDEXED`."""
        text = "\n".join([subject, body, *tags])
        tokens = index_tokens(text[:_WORDS_MAX])
        placed = (f"'{token}':{min(place, _PLACE_MAX)}" for place, token in enumerate(tokens, 1))
        return folded(without_runs(text))[:_WORDS_MAX], " ".join([f"'{self._mine}'", *placed])

    async def _split_older(self) -> bool:
        """Index some of the rows that an older version wrote without splitting them; False if there are no more."""
        if self._all_split:
            return False
        async with self._link.transaction() as cursor:
            await self._lock_saving(cursor)
            await cursor.execute(
                "SELECT id, subject, body, tags FROM soul.memories"  # noqa: S608 - constants
                " WHERE agent = %s AND to_split AND superseded_by IS NULL"
                f" AND soul.may_be_unspaced(subject, body, tags) ORDER BY id LIMIT {_SPLIT_AT_ONCE}",
                (self._agent,),
            )
            rows = await cursor.fetchall()
            for row in rows:
                await cursor.execute(
                    f"UPDATE soul.memories SET to_split = false, words = {_INDEXED} WHERE id = %s",  # noqa: S608 - constants
                    (*self._indexed(row["subject"], row["body"], row["tags"]), row["id"]),
                )
        self._all_split = not rows
        return not self._all_split


def _kept(moment: datetime) -> datetime:
    """A moment as every store keeps it: whole milliseconds."""
    return parse_iso(iso(moment))


def _memory_of(row: dict[str, Any]) -> Memory:
    told = row["last_recalled_at"]
    return Memory(
        **{
            **row,
            "tags": tuple(row["tags"]),
            "dids": tuple(row["dids"]),
            "created_at": iso(row["created_at"]),
            "updated_at": iso(row["updated_at"]),
            "last_recalled_at": iso(told) if told else None,
        }
    )
