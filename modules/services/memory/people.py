"""What the memories in soul.db hold of a person. Each method is one step of a transaction that its caller opened.

The connection must know the person (`modules/runtime/database/functions.py`).
"""

from __future__ import annotations

import json
import sqlite3

from common.person import Held, Trace

_THEIRS = "(instr(dids, :did) AND is_in(dids))"


def copies_of(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the memories that rest on the words of an account: subject and body, with the end of a line between."""
    query = f"SELECT subject || char(10) || body AS body FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [str(row["body"]) for row in connection.execute(query, {"did": did})]


def naming(connection: sqlite3.Connection) -> list[str]:
    """Return where memories and fields that rest on nobody's words but ours and the owner's name the person."""
    rows = connection.execute("SELECT id FROM memories WHERE dids = '' AND named(subject, body, tags) ORDER BY id")
    fields = connection.execute("SELECT subject, field FROM profiles WHERE named(value) ORDER BY subject, field")
    return [
        *(f"memory {row['id']}" for row in rows),
        *(f"profile of {row['subject']}: {row['field']}" for row in fields),
    ]


class MemoryPeople:
    """The memories that rest on a person's words."""

    store = "memories"
    tables = frozenset({"memories", "memories_fts", "profiles"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return these memories, the oldest first."""
        query = f"SELECT subject, body FROM memories WHERE {_THEIRS} ORDER BY id"  # noqa: S608 - a constant
        words = [f"{row['subject']}: {row['body']}" for row in connection.execute(query, _did(trace))]
        return Held(self.store, len(words), tuple(words))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete them, with their words in the index; return how many there were.

        A memory whose place one of them had taken stays replaced.
        """
        theirs = f"SELECT id FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
        listed = json.dumps([row["id"] for row in connection.execute(theirs, _did(trace))])
        connection.execute(
            "UPDATE memories SET superseded_by = id WHERE superseded_by IN (SELECT value FROM json_each(?))", (listed,)
        )
        gone = connection.execute("DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))", (listed,))
        connection.execute("UPDATE memories SET source = without_did(source) WHERE holds_did(source)")
        # NOTE(self): the index keeps the words of deleted rows until its parts are merged.
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")
        return gone.rowcount


def _did(trace: Trace) -> dict[str, str]:
    return {"did": trace.person.did}
