"""What the intents hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from common.person import Held, Trace
from modules.services.outbox.rules import counts

_TEXT = "CASE WHEN json_valid(body) THEN json_extract(body, '$.text') END"
_LAST_REPLIES = 5
_NAMED = "names_person(target, body, cause_id, result_uri, error)"


def intents_of(connection: sqlite3.Connection, threads: Collection[str]) -> frozenset[str]:
    """Return the ids of the intents that reach the person or name them, and of those in these threads (root URIs)."""
    rows = connection.execute(
        f"SELECT id FROM intents WHERE {_NAMED} OR EXISTS"  # noqa: S608 - a constant
        " (SELECT 1 FROM json_each(?) WHERE instr(target, value) OR instr(body, value))",
        (json.dumps(sorted(threads)),),
    )
    return frozenset(str(row[0]) for row in rows)


def texts_of(connection: sqlite3.Connection, ids: Collection[str]) -> list[str]:
    """Return the words of these intents."""
    query = f"SELECT {_TEXT} AS text FROM intents WHERE id IN (SELECT value FROM json_each(?)) AND text IS NOT NULL"  # noqa: S608 - a constant
    return [str(row["text"]) for row in connection.execute(query, (json.dumps(sorted(ids)),))]


def replies_to(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the ids of our last few replies to an account, the newest first."""
    query = (
        "SELECT id FROM intents WHERE kind = 'reply' AND state = 'done' AND substr(target, 1, ?) = ?"
        " ORDER BY created_at DESC LIMIT ?"
    )
    address = f"at://{did}/"
    return [str(row[0]) for row in connection.execute(query, (len(address), address, _LAST_REPLIES))]


def messages_to(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the ids of our last few direct messages to an account, but for answers about its data, newest first."""
    query = (
        "SELECT id FROM intents WHERE kind = 'direct_message' AND state = 'done' AND json_valid(body)"
        " AND json_extract(body, '$.to') = ? AND json_extract(body, '$.about_rights') IS NOT 1"
        " ORDER BY created_at DESC LIMIT ?"
    )
    return [str(row[0]) for row in connection.execute(query, (did, _LAST_REPLIES))]


class OutboxPeople:
    """The acts that reached a person or named them, and those that still wait."""

    store = "acts"
    tables = frozenset({"intents", "other_writes"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the kind of each act with its words, the oldest first."""
        query = (
            f"SELECT kind, {_TEXT} AS text FROM intents"  # noqa: S608 - a constant
            " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY created_at"
        )
        rows = connection.execute(query, (_listed(trace),)).fetchall()
        return Held(self.store, len(rows), tuple(f"{row[0]}: {row[1]}" if row[1] else str(row[0]) for row in rows))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete these acts; return how many there were. What waited does not leave.

        What has left still counts against all limits, the person's own too, as a write to a hash.
        """
        counts.keep(connection, trace.intents)
        query = "DELETE FROM intents WHERE id IN (SELECT value FROM json_each(?))"
        return connection.execute(query, (_listed(trace),)).rowcount


def _listed(trace: Trace) -> str:
    return json.dumps(sorted(trace.intents))
