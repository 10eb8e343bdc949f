"""The rows that are tied to a person, by statements of the package that owns them; and those of the marks."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from common.person import Held, Trace


@dataclass(frozen=True, slots=True)
class TiedRows:
    """The rows of some tables that are tied to a person. Each method is one step of a transaction of its caller.

    The statements may name `:did` and `:part`, and use what `modules/runtime/database/functions.py` adds.

    Attributes:
        store: as it is told.
        tables: where the rows are.
        tells: queries for what the rows say, a text each.
        forgets: statements that delete rows, or put somebody in the person's place.

    """

    store: str
    tables: frozenset[str]
    tells: tuple[str, ...]
    forgets: tuple[str, ...]

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what the rows say."""
        told = self.tells if trace.person.did else ()
        rows = [row[0] for statement in told for row in _rows(connection, statement, trace)]
        return Held(self.store, len(rows), tuple(str(text) for text in rows if text))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete the person's rows, and redact the rest; return how many rows changed."""
        return sum(_rows(connection, statement, trace).rowcount for statement in self.forgets if trace.person.did)


MARKS = TiedRows(
    store="marks",
    tables=frozenset({"marks"}),
    tells=("SELECT name FROM marks WHERE holds_did(name) ORDER BY name",),
    forgets=("DELETE FROM marks WHERE holds_did(name)",),
)
"""The marks of conversations that an account began: that something is to be cleared away after one of them."""


def _rows(connection: sqlite3.Connection, statement: str, trace: Trace) -> sqlite3.Cursor:
    return connection.execute(statement, {"did": trace.person.did, "part": trace.person.part})
