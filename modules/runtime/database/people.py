"""What the marks hold of a person. Each method is one step of a transaction that its caller opened."""

from __future__ import annotations

import sqlite3

from common.person import Held, Trace


class MarksPeople:
    """The marks of conversations that an account began: that something is to be cleared away after one of them."""

    store = "marks"
    tables = frozenset({"marks"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the names of these marks."""
        rows = connection.execute("SELECT name FROM marks WHERE holds_did(name) ORDER BY name")
        words = tuple(str(row[0]) for row in rows)
        return Held(self.store, len(words), words)

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete these marks; return how many there were."""
        return connection.execute("DELETE FROM marks WHERE holds_did(name)").rowcount
