"""What experiences hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import sqlite3

from common.person import Held, Trace

_THEIRS = "(did = :did OR ((instr(key, :part) OR instr(uri, :part)) AND holds_did(key, uri)))"
_WITHOUT_THEM = """
UPDATE experiences SET about = redacted(about), person = redacted(person)
    WHERE (instr(about, :part) OR instr(person, :part)) AND holds_did(about, person)
"""


class ExperiencePeople:
    """The experiences with a person, and in their threads; others that name them stay, with somebody in their place."""

    store = "experiences"
    tables = frozenset({"experiences"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what these were."""
        if not trace.person.did:
            return Held(self.store, 0)
        did = {"did": trace.person.did, "part": trace.person.part}
        query = f"SELECT type || ': ' || about FROM experiences WHERE {_THEIRS} ORDER BY id"  # noqa: S608 - a constant
        words = tuple(str(row[0]) for row in connection.execute(query, did))
        return Held(self.store, len(words), words)

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete them; return how many rows changed."""
        if not trace.person.did:
            return 0
        did = {"did": trace.person.did, "part": trace.person.part}
        gone = connection.execute(f"DELETE FROM experiences WHERE {_THEIRS}", did).rowcount  # noqa: S608 - a constant
        return gone + connection.execute(_WITHOUT_THEM, did).rowcount
