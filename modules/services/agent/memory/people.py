"""What the memories in soul.db hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

from common.person import Held, Trace

_THEIRS = "(names_person(subject, body, tags, source) OR source IN (SELECT value FROM json_each(?)))"


def bodies_of(connection: sqlite3.Connection, sessions: Collection[str]) -> list[str]:
    """Return the bodies of the memories that name the person or come from these conversations."""
    query = f"SELECT body FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
    return [str(row["body"]) for row in connection.execute(query, (json.dumps(sorted(sessions)),))]


class MemoryPeople:
    """Memories that name a person or come from a conversation with them, and fields of the profiles that name them."""

    store = "memories"
    tables = frozenset({"memories", "memories_fts", "profiles"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return these memories, the oldest first, and these fields."""
        query = f"SELECT subject, body FROM memories WHERE {_THEIRS} ORDER BY id"  # noqa: S608 - a constant
        words = [f"{row['subject']}: {row['body']}" for row in connection.execute(query, (_listed(trace),))]
        fields = connection.execute("SELECT field, value FROM profiles WHERE names_person(value)")
        words += [f"{row['field']}: {row['value']}" for row in fields]
        return Held(self.store, len(words), tuple(words))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete them, with their words in the index; return how many there were.

        A memory whose place one of them had taken stays replaced.
        """
        theirs = f"SELECT id FROM memories WHERE {_THEIRS}"  # noqa: S608 - a constant
        listed = json.dumps([row["id"] for row in connection.execute(theirs, (_listed(trace),))])
        connection.execute(
            "UPDATE memories SET superseded_by = id WHERE superseded_by IN (SELECT value FROM json_each(?))", (listed,)
        )
        gone = connection.execute("DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))", (listed,))
        fields = connection.execute("DELETE FROM profiles WHERE names_person(value)")
        # NOTE(self): the index keeps the words of deleted rows until its parts are merged.
        connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")
        return gone.rowcount + fields.rowcount


def _listed(trace: Trace) -> str:
    return json.dumps(sorted(trace.sessions))
