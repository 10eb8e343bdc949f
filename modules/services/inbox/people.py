"""What received posts and messages hold of a person. Each method is one step of a transaction of its caller."""

from __future__ import annotations

import sqlite3

from common.person import Held, Trace

_WITHOUT_THEM = """
UPDATE pending_notifications SET payload = redacted_json(payload), outcome = redacted(outcome),
    state = CASE WHEN state = 'pending' AND holds_did(root_uri, json_field(payload, 'reply')) THEN 'dropped'
        ELSE state END,
    root_uri = CASE WHEN holds_did(root_uri) THEN uri ELSE root_uri END
    WHERE (instr(root_uri, :part) OR instr(payload, :part) OR instr(outcome, :part))
        AND holds_did(root_uri, payload, outcome)
"""


class InboxPeople:
    """The posts and direct messages that a person wrote."""

    store = "received posts"
    tables = frozenset({"pending_notifications", "direct_conversations", "direct_messages"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the texts of these posts, the oldest first."""
        did = {"did": trace.person.did, "part": trace.person.part}
        rows = connection.execute(
            "SELECT json_field(payload, 'text') FROM pending_notifications WHERE author_did = :did ORDER BY indexed_at",
            did,
        ).fetchall()
        rows += connection.execute(
            "SELECT text FROM direct_messages WHERE author_did = :did ORDER BY rev", did
        ).fetchall()
        return Held(self.store, len(rows), tuple(str(row[0]) for row in rows if row[0]))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete the person's posts; return how many rows changed.

        A post of somebody else that answers or names them stays, with somebody in their place. One that waits for an
        answer in their thread cannot be answered there any more.
        """
        did = {"did": trace.person.did, "part": trace.person.part}
        gone = sum(
            connection.execute(statement, did).rowcount
            for statement in (
                "DELETE FROM pending_notifications WHERE author_did = :did",
                "DELETE FROM direct_messages WHERE author_did = :did",
                "DELETE FROM direct_conversations WHERE did = :did",
            )
        )
        others = connection.execute(_WITHOUT_THEM, did).rowcount if trace.person.did else 0
        return gone + others
