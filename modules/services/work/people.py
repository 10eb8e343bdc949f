"""What the rows of work hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import sqlite3

from common.person import Held, Trace

_THEIRS = "(author = :did OR ((instr(key, :part) OR instr(cause_id, :part)) AND holds_did(key, cause_id)))"
_WITHOUT_THEM = """
UPDATE work SET payload = redacted_json(payload), outcome = redacted(outcome)
    WHERE (instr(payload, :part) OR instr(outcome, :part)) AND holds_did(payload, outcome)
"""


class WorkPeople:
    """The work that a person caused; work of others that names them stays, with somebody in their place."""

    store = "work"
    tables = frozenset({"work"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return which work that is."""
        did = {"did": trace.person.did, "part": trace.person.part}
        query = f"SELECT kind || ' ' || key FROM work WHERE {_THEIRS} ORDER BY created_at"  # noqa: S608 - a constant
        words = tuple(str(row[0]) for row in connection.execute(query, did)) if trace.person.did else ()
        return Held(self.store, len(words), words)

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete it; return how many rows changed."""
        if not trace.person.did:
            return 0
        did = {"did": trace.person.did, "part": trace.person.part}
        gone = connection.execute(f"DELETE FROM work WHERE {_THEIRS}", did).rowcount  # noqa: S608 - a constant
        return gone + connection.execute(_WITHOUT_THEM, did).rowcount
