"""What the journal holds of a person. Each method is one step of a transaction that its caller opened.

The connection must know the person (`modules/runtime/database/functions.py`).
"""

from __future__ import annotations

import json
import sqlite3

from common.person import Held, Trace
from modules.runtime.database.person_hash import person_hash

_THEIRS = """(dids = :did OR (instr(trigger_uri, :part) AND holds_did(trigger_uri))
    OR trigger_uri IN (SELECT value FROM json_each(:posts)) OR intent_id IN (SELECT value FROM json_each(:intents))
    OR (instr(data, :did) AND json_field(data, 'did') = :did))"""
_KEEP_TURNS = """UPDATE journal SET summary = 'A turn about somebody who is forgotten begins', reason = '',
    author = NULL, dids = '', trigger_uri = NULL, intent_id = NULL,
    data = json_object('act', 'turn', 'did', '', 'hash', :hash,
    'places', json(coalesce(json_extract(data, '$.places'), '[]')))
    WHERE instr(data, :did) AND json_field(data, 'did') = :did AND json_field(data, 'act') = 'turn'"""


def naming(connection: sqlite3.Connection) -> list[str]:
    """Return how many entries name the person and are tied to nobody."""
    named = "named(summary, reason, author, data)"
    count = connection.execute(f"SELECT count(*) FROM journal WHERE dids = '' AND {named}").fetchone()[0]  # noqa: S608 - a constant
    return [f"{count} {'entry' if count == 1 else 'entries'} of the journal"] if count else []


class JournalPeople:
    """The entries about what a person wrote, or about an act towards them; in others they become somebody."""

    store = "journal"
    tables = frozenset({"journal"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return these entries, the oldest first."""
        if not trace.person.did:
            return Held(self.store, 0)
        query = f"SELECT summary FROM journal WHERE {_THEIRS} ORDER BY id"  # noqa: S608 - constants
        words = tuple(str(row[0]) for row in connection.execute(query, _given(trace)))
        return Held(self.store, len(words), words)

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete these entries, and tell of others without the person; return how many rows changed.

        Turns about them still count against their limits, by a hash.
        """
        if not trace.person.did:
            return 0
        hashed = person_hash(connection, trace.person.did)
        kept = connection.execute(_KEEP_TURNS, {"did": trace.person.did, "hash": hashed}).rowcount
        query = f"DELETE FROM journal WHERE {_THEIRS}"  # noqa: S608 - constants
        gone = connection.execute(query, _given(trace)).rowcount
        others = connection.execute(
            "UPDATE journal SET summary = redacted(summary), reason = redacted(reason), author = redacted(author),"
            " data = redacted_json(data), dids = without_did(dids)"
            " WHERE instr(dids, :part) OR instr(summary, :part) OR instr(reason, :part) OR instr(data, :part)",
            {"part": trace.person.part},
        )
        return kept + gone + others.rowcount


def _given(trace: Trace) -> dict[str, str]:
    posts, intents = json.dumps(sorted(trace.posts)), json.dumps(sorted(trace.intents))
    return {"did": trace.person.did, "part": trace.person.part, "intents": intents, "posts": posts}
