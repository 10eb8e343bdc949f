"""The rows of archives in `.memory/soul.db`. Each function is part of the caller's transaction.

An archive is intended first (`prepared`): its row holds all that is to be done, and nothing has been done. It is `done`
in the transaction that takes the messages away, when its bytes lie in the store. Only what is done is listed.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime

from adapters.storage.keys import archive_key
from adapters.storage.store import Storage
from common.clock import iso, parse_iso
from common.person import tied
from common.result import ApiResult, Err, Ok, answering
from modules.runtime.database.database import Database
from modules.services.memory.rows import remember
from modules.services.sessions import endings, store
from modules.services.sessions.archive_file import ArchivedLine, epoch_ms, unpack
from modules.services.sessions.archived import Archive, Distilled
from modules.services.sessions.rows import dump
from modules.services.sessions.types import MessageRow, Session

_COLUMNS = [field.name for field in fields(Archive)]


def prepare(
    connection: sqlite3.Connection,
    session: Session,
    rows: Sequence[MessageRow],
    distilled: Distilled,
    *,
    agent_id: str,
    whole: bool,
    now: datetime,
) -> Archive | None:
    """Intend to archive `rows`; with `whole` the session ends now. None if they are not what is kept there any more."""
    last_seq = rows[-1].seq
    kept = store.rows(connection, session.id, until=None if whole else last_seq)
    if store.is_over(connection, session.id) or [row.seq for row in kept] != [row.seq for row in rows]:
        return None
    archive = Archive(
        key="",
        session_id=session.id,
        session_key=session.key,
        last_seq=last_seq,
        part=None if whole else _parts(connection, session.id) + 1,
        message_count=len(rows),
        metadata={},
        distilled=distilled,
        prepared_at=iso(now),
        dids=tied(did for row in rows for did in row.dids.split()),
    )
    archive = replace(
        archive,
        key=_free_key(connection, agent_id, archive),
        metadata=_metadata(archive, agent_id, store.tokens(connection, session.id)),
    )
    row = {**asdict(archive), "metadata": dump(archive.metadata), "distilled": dump(distilled.to_json())}
    values = ", ".join(f":{name}" for name in _COLUMNS)
    connection.execute(f"INSERT INTO archives (state, {', '.join(_COLUMNS)}) VALUES ('prepared', {values})", row)  # noqa: S608 - constants
    if whole:
        endings.end(connection, session, now)
    return archive


def finish(connection: sqlite3.Connection, archive: Archive, summary: store.NewMessageRow | None) -> bool:
    """Take away what is archived, put `summary` in its place, keep the memories; False if that was done before."""
    query = "UPDATE archives SET state = 'done' WHERE key = ? AND state = 'prepared'"
    if not connection.execute(query, (archive.key,)).rowcount:
        return False
    said_at = connection.execute(
        "SELECT max(created_at) FROM session_messages WHERE session_id = ? AND seq <= ?",
        (archive.session_id, archive.last_seq),
    ).fetchone()[0]
    store.remove(connection, archive.session_id, archive.last_seq)
    if summary is not None:
        store.insert(connection, archive.session_id, archive.last_seq, summary, said_at)
    for memory in archive.distilled.memories:
        remember(connection, memory, parse_iso(archive.distilled.remembered_at))
    return True


def prepared(connection: sqlite3.Connection) -> list[Archive]:
    """What was intended and is not yet done, oldest first."""
    return _archives(connection, "state = 'prepared' ORDER BY prepared_at, key")


def done(connection: sqlite3.Connection, session_key: str | None, limit: int) -> list[Archive]:
    """What lies in the store for certain, newest first."""
    return _archives(
        connection,
        "state = 'done' AND (:key IS NULL OR session_key = :key) ORDER BY prepared_at DESC, key DESC LIMIT :limit",
        {"key": session_key, "limit": limit},
    )


def of_session(connection: sqlite3.Connection, session_id: str) -> list[Archive]:
    """All of one conversation, in the order of what was said."""
    where = "session_id = :id ORDER BY part IS NULL, part"
    return _archives(connection, where, {"id": session_id})


def _parts(connection: sqlite3.Connection, session_id: str) -> int:
    query = "SELECT count(*) FROM archives WHERE session_id = ? AND part IS NOT NULL"
    return int(connection.execute(query, (session_id,)).fetchone()[0])


def _free_key(connection: sqlite3.Connection, agent_id: str, archive: Archive) -> str:
    if archive.part is None:
        return archive_key(agent_id, archive.session_id)
    moment = epoch_ms(archive.prepared_at)
    while True:
        key = archive_key(agent_id, archive.session_id, epoch_ms=moment)
        if connection.execute("SELECT 1 FROM archives WHERE key = ?", (key,)).fetchone() is None:
            return key
        moment += 1


def _metadata(archive: Archive, agent_id: str, tokens: tuple[int, int]) -> dict[str, str]:
    common = {
        "sessionKey": archive.session_key,
        "sessionId": archive.session_id,
        "agentId": agent_id,
        "messageCount": str(archive.message_count),
        "archivedAt": archive.prepared_at,
    }
    if archive.part is not None:
        return {**common, "partNumber": str(archive.part)}
    spent, said = tokens
    return {**common, "inputTokens": str(spent), "outputTokens": str(said), "totalTokens": str(spent + said)}


def _archives(connection: sqlite3.Connection, where: str, values: dict[str, object] | None = None) -> list[Archive]:
    query = f"SELECT {', '.join(_COLUMNS)} FROM archives WHERE {where}"  # noqa: S608 - our own words
    rows = (dict(row) for row in connection.execute(query, values or {}))
    return [
        Archive(
            **{
                **row,
                "metadata": json.loads(row["metadata"]),
                "distilled": Distilled.from_json(json.loads(row["distilled"])),
            }
        )
        for row in rows
    ]


class Archives:
    """The archives of one SOUL."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self._database = database
        self._storage = storage

    async def listed(self, session_key: str | None = None, limit: int = 100) -> list[Archive]:
        """Return the archives that lie in the store, newest first."""
        return await self._database.run(lambda connection: done(connection, session_key, limit))

    @answering
    async def read(self, archive: Archive) -> ApiResult[list[ArchivedLine]]:
        """The lines of an archive; `invalid` if its bytes are damaged."""
        found = (await self._storage.get(archive.key)).or_raise()
        try:
            return Ok(await asyncio.to_thread(unpack, found.data))
        except ValueError as error:
            return Err(f"{archive.key}: {error}", "invalid")
