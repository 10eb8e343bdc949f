"""What the journal holds of a person. Each method is one step of a transaction that its caller opened.

The connection must know `names_person` (`modules/runtime/database/functions.py`).
"""

from __future__ import annotations

import json
import sqlite3

from common.person import Held, Trace

_THEIRS = """(names_person(summary, line, reason, trigger_uri, author, data)
    OR intent_id IN (SELECT value FROM json_each(:intents)) OR trigger_uri IN (SELECT value FROM json_each(:posts))
    OR EXISTS (SELECT 1 FROM json_each(:intents) WHERE instr(data, value)))"""


class JournalPeople:
    """The entries that name a person, or tell of an act towards them."""

    store = "journal"
    tables = frozenset({"journal"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return these entries, the oldest first."""
        query = f"SELECT summary FROM journal WHERE {_THEIRS} ORDER BY id"  # noqa: S608 - constants
        words = tuple(str(row[0]) for row in connection.execute(query, _given(trace)))
        return Held(self.store, len(words), words)

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete these entries; return how many there were."""
        query = f"DELETE FROM journal WHERE {_THEIRS}"  # noqa: S608 - constants
        return connection.execute(query, _given(trace)).rowcount


def _given(trace: Trace) -> dict[str, str]:
    return {"intents": json.dumps(sorted(trace.intents)), "posts": json.dumps(sorted(trace.posts))}
