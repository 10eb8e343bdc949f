"""The rows of conversations in `.memory/soul.db`. Each function is part of the caller's transaction."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from common.clock import iso
from common.provenance import Provenance
from common.session_keys import MAIN_PREFIX, is_main
from modules.runtime.database import marks
from modules.runtime.llm.dialect import Message, Usage
from modules.services.sessions.types import Fields, MessageRow, Role, Session, dump, from_fields

SUMMARY = "summary"
"""The field that marks a summary of ours."""

NOTE = "note"
"""The field that marks other words of the program."""

_UNKEPT = "unkept_until"
_SESSION = "id, key, created_at, last_active_at"


class NewMessageRow(NamedTuple):
    """A part of a message that is to be written."""

    role: Role
    fields: Fields
    tokens: int
    provenance: Provenance
    dids: str | None = None
    """The accounts whose words it rests on, separated by spaces; None for those of the message before it."""


def going_on(connection: sqlite3.Connection, key: str) -> Session | None:
    """Return the current conversation under `key`, or None."""
    return _session(connection, "key = ? AND ended_at IS NULL", key)


def find(connection: sqlite3.Connection, session_id: str) -> Session | None:
    """Return a conversation, current or ended, or None."""
    return _session(connection, "id = ?", session_id)


def begin(connection: sqlite3.Connection, key: str, now: datetime) -> Session:
    """Begin a conversation under `key`; its id is unique and holds the time of its beginning."""
    mark = hashlib.sha256(key.encode(errors="backslashreplace")).hexdigest()[:12]
    moment = now
    while find(connection, session_id := f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}-{mark}"):
        moment += timedelta(milliseconds=1)
    session = Session(session_id, key, iso(now), iso(now))
    connection.execute(
        "INSERT INTO sessions (id, key, created_at, last_active_at) VALUES (?, ?, ?, ?)",
        (session.id, session.key, session.created_at, session.last_active_at),
    )
    return session


def append(connection: sqlite3.Connection, session_id: str, rows: Iterable[NewMessageRow], now: datetime) -> None:
    """Append `rows`; a number that was used before is not used again."""
    last = connection.execute(
        "SELECT max(coalesce((SELECT max(seq) FROM session_messages WHERE session_id = :id), 0),"
        " coalesce((SELECT max(last_seq) FROM archives WHERE session_id = :id), 0))",
        {"id": session_id},
    ).fetchone()[0]
    before = connection.execute(
        "SELECT dids FROM session_messages WHERE session_id = ? ORDER BY seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    dids = before["dids"] if before else ""
    for seq, row in enumerate(rows, last + 1):
        dids = dids if row.dids is None else row.dids
        insert(connection, session_id, seq, row._replace(dids=dids), iso(now))
    connection.execute("UPDATE sessions SET last_active_at = ? WHERE id = ?", (iso(now), session_id))


def insert(connection: sqlite3.Connection, session_id: str, seq: int, row: NewMessageRow, created_at: str) -> None:
    """Write one row with the number `seq`."""
    connection.execute(
        "INSERT INTO session_messages VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (session_id, seq, row.role, dump(row.fields), row.tokens, int(row.provenance), created_at, row.dids or ""),
    )


def rows(connection: sqlite3.Connection, session_id: str, *, until: int | None = None) -> list[MessageRow]:
    """Return the stored messages, oldest first, up to the row `until`."""
    query = "SELECT * FROM session_messages WHERE session_id = ? AND (? IS NULL OR seq <= ?) ORDER BY seq"
    return [
        MessageRow(
            session_id=row["session_id"],
            seq=row["seq"],
            role=row["role"],
            message=_message(row),
            tokens=row["tokens"],
            provenance=Provenance(row["provenance"]),
            created_at=row["created_at"],
            dids=row["dids"],
            is_note=_is_note(row),
        )
        for row in connection.execute(query, (session_id, until, until))
    ]


def remove(connection: sqlite3.Connection, session_id: str, until: int) -> None:
    """Delete the rows up to `until`."""
    connection.execute("DELETE FROM session_messages WHERE session_id = ? AND seq <= ?", (session_id, until))


def least_trusted(connection: sqlite3.Connection, session_id: str) -> Provenance:
    """Return the provenance of the least trusted stored words; the owner's if there are none."""
    query = "SELECT min(provenance) FROM session_messages WHERE session_id = ?"
    least = connection.execute(query, (session_id,)).fetchone()[0]
    return Provenance.OWNER if least is None else Provenance(least)


def end(connection: sqlite3.Connection, session_id: str, now: datetime) -> None:
    """End a conversation; another may begin under the same key."""
    connection.execute("UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", (iso(now), session_id))


def goes_on(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether a conversation with this key is current."""
    query = "SELECT 1 FROM sessions WHERE key = ? AND ended_at IS NULL"
    return connection.execute(query, (key,)).fetchone() is not None


def leave_unkept(connection: sqlite3.Connection) -> None:
    """Keep nothing of what was said so far in the owner's talk, as it may contain what the owner had forgotten."""
    newest = connection.execute("SELECT max(created_at) FROM session_messages").fetchone()[0]
    marks.put(connection, {_UNKEPT: newest or ""})
    query = "UPDATE archives SET distilled = json_patch(distilled, ?) WHERE session_key GLOB ?"
    connection.execute(query, ('{"summary":"","memories":[]}', f"{MAIN_PREFIX}*"))


def kept_after(connection: sqlite3.Connection, session_key: str) -> str:
    """Return the time after which messages under `session_key` may be kept; "" if all may."""
    return marks.get(connection, _UNKEPT) if is_main(session_key) else ""


def is_cut(connection: sqlite3.Connection, session_id: str) -> bool:
    """Return whether nothing is kept of the beginning of a conversation."""
    session = find(connection, session_id)
    return session is not None and session.created_at <= kept_after(connection, session.key)


def is_over(connection: sqlite3.Connection, session_id: str) -> bool:
    """Return whether the conversation has ended or never existed."""
    query = "SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NULL"
    return connection.execute(query, (session_id,)).fetchone() is None


def count(connection: sqlite3.Connection, session_id: str, usage: Usage) -> None:
    """Add the tokens of a model call."""
    connection.execute(
        "UPDATE sessions SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ? WHERE id = ?",
        (usage.input_tokens, usage.output_tokens, session_id),
    )


def tokens(connection: sqlite3.Connection, session_id: str) -> tuple[int, int]:
    """Return the counted input and output tokens."""
    query = "SELECT input_tokens, output_tokens FROM sessions WHERE id = ?"
    counted = connection.execute(query, (session_id,)).fetchone()
    return counted["input_tokens"], counted["output_tokens"]


def idle(connection: sqlite3.Connection, before: datetime) -> list[Session]:
    """Return current conversations in which nothing was said since `before`, the longest idle first.

    A conversation in which the owner waits for an answer is never idle.
    """
    where = (
        "ended_at IS NULL AND last_active_at < ? AND id NOT IN (SELECT session_id FROM owner_messages)"
        " ORDER BY last_active_at"
    )
    return _sessions(connection, where, iso(before))


def summary(connection: sqlite3.Connection, session_id: str) -> str:
    """Return the summary at the beginning of a conversation; "" if there is none."""
    query = "SELECT content FROM session_messages WHERE session_id = ? ORDER BY seq LIMIT 1"
    first = connection.execute(query, (session_id,)).fetchone()
    fields = json.loads(first["content"]) if first else {}
    return str(fields["content"]) if SUMMARY in fields else ""


def words_of_owner(connection: sqlite3.Connection, session_key: str) -> list[Message]:
    """Return the owner's own messages in the current conversation, without tool answers and words of the program."""
    query = """
        SELECT * FROM session_messages WHERE role = 'user' AND provenance = ? AND session_id =
            (SELECT id FROM sessions WHERE key = ? AND ended_at IS NULL) ORDER BY seq
    """
    found = connection.execute(query, (int(Provenance.OWNER), session_key))
    return [_message(row) for row in found if not _is_note(row)]


def _is_note(row: sqlite3.Row) -> bool:
    return not {SUMMARY, NOTE}.isdisjoint(json.loads(row["content"]))


def _message(row: sqlite3.Row) -> Message:
    return from_fields(row["role"], json.loads(row["content"]))


def _session(connection: sqlite3.Connection, where: str, value: str) -> Session | None:
    return next(iter(_sessions(connection, where, value)), None)


def _sessions(connection: sqlite3.Connection, where: str, value: object) -> list[Session]:
    query = f"SELECT {_SESSION} FROM sessions WHERE {where}"  # noqa: S608 - our own words
    return [Session(*row) for row in connection.execute(query, (value,))]
