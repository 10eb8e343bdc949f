"""What the tables hold of a person: declared once by the package that owns them, told and forgotten from that.

Of somebody who is forgotten only a hash of their DID, with a secret of this home, is still known.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from common.person import Held, Trace
from common.session_keys import FORMER_PREFIX, MAIN_PREFIX
from modules.runtime.database import marks

_MARK = "tombstone_secret"
_SECRET_BYTES = 32


def person_hash(connection: sqlite3.Connection, did: str) -> str:
    """Return the hash of the account `did`, the same for as long as the database lives. A step of a transaction."""
    if not marks.get(connection, _MARK):
        marks.put_if_absent(connection, _MARK, secrets.token_hex(_SECRET_BYTES))
    return hmac.new(marks.get(connection, _MARK).encode(), did.encode(), hashlib.sha256).hexdigest()


_DAY = len("2026-01-31")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalTable:
    """The rows of one table that are a person's, and what of a person stands in the rows of others.

    All of it is SQL. It may name `:did`, `:part` and, as JSON lists, `:posts`, `:intents` and `:sessions` of the trace.
    It may use what `modules/runtime/database/functions.py` adds.

    Attributes:
        name: of the table.
        theirs: the condition of the person's rows, which are deleted; "" where no row is anybody's.
        shown: what such a row tells, as text; "" where nothing is told of it.
        tells: the condition of those of them that say something; the others are deleted, and not counted.
        at: when a row was written, ISO-8601; '' where nothing says so.
        order: of what is told.
        redacts: expressions for the columns of other rows that may hold the person, with somebody in their place.
        only: the condition of the rows that are redacted.
        also: the condition of further ones, which hold no DID.
        shown_of_others: what a row that is redacted tells; "" where nothing is told of it.
        named: a query for where the person is named in the owner's words or ours, which stay.

    """

    name: str
    theirs: str = ""
    shown: str = ""
    tells: str = "1"
    at: str = "''"
    order: str = "rowid"
    redacts: Mapping[str, str] = field(default_factory=dict)
    only: str = "1"
    also: str = "0"
    shown_of_others: str = ""
    named: str = ""

    @property
    def queries(self) -> Iterator[str]:
        """Yield the queries for what the rows tell."""
        if self.shown:
            those = f"{self.theirs} AND {self.tells}"
            yield f"SELECT {self.shown}, {self.at} FROM {self.name} WHERE {those} ORDER BY {self.order}"  # noqa: S608 - constants
        if self.shown_of_others:
            others = f"{self._of_others} AND NOT ({self.theirs})"
            yield f"SELECT {self.shown_of_others}, {self.at} FROM {self.name} WHERE {others} ORDER BY {self.order}"  # noqa: S608 - constants

    @property
    def changes(self) -> Iterator[str]:
        """Yield the statements that leave nothing of the person."""
        if self.theirs:
            yield f"DELETE FROM {self.name} WHERE {self.theirs}"  # noqa: S608 - constants
        if self.redacts:
            columns = ", ".join(f"{column} = {without}" for column, without in self.redacts.items())
            yield f"UPDATE {self.name} SET {columns} WHERE {self._of_others}"  # noqa: S608 - constants

    @property
    def _of_others(self) -> str:
        found = " OR ".join(f"instr({column}, :part)" for column in self.redacts)
        return f"{self.only} AND (({found}) AND holds_did({', '.join(self.redacts)}) OR {self.also})"


@dataclass(frozen=True, slots=True)
class PersonalRows:
    """What one store holds of people. Each method is one step of a transaction of its caller.

    The connection must know the person (`know_person`).

    Attributes:
        store: as it is told.
        tables: in the order in which they are changed.
        before: statements that run before a person's rows are deleted, and may also name `:hash`.
        copies: statements that take the memories of the trace that go out of what stays.
        counts_on: called before that, to keep what must still be counted.
        after: statements that run after it.

    """

    store: str
    tables: tuple[PersonalTable, ...]
    before: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    counts_on: Callable[[sqlite3.Connection, Trace], None] = lambda *_: None
    after: tuple[str, ...] = ()

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what the rows tell."""
        values, told = _values(trace), [one for table in self.tables for one in table.queries if trace.person.did]
        rows = [(row[0], str(row[1])[:_DAY]) for query in told for row in connection.execute(query, values)]
        return Held(self.store, len(rows), tuple(f"{day} {text}".strip() for text, day in rows if text))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete the person's rows, and redact the others; return how many rows changed."""
        if not trace.person.did:
            return 0
        values = _values(trace) | {"hash": person_hash(connection, trace.person.did)}
        self.counts_on(connection, trace)
        for statement in (*self.before, *self.copies):
            connection.execute(statement, values)
        changed = sum(connection.execute(one, values).rowcount for table in self.tables for one in table.changes)
        for statement in self.after:
            connection.execute(statement, values)
        return changed

    def named(self, connection: sqlite3.Connection) -> list[str]:
        """Return where the person is named in rows that stay."""
        queries = filter(None, (table.named for table in self.tables))
        return [str(row[0]) for query in queries for row in connection.execute(query)]


def change_owner(connection: sqlite3.Connection, table: str, column: str, before: str, now: str) -> None:
    """Set aside what one owner said in private, by the key that names its talk, and bring back what `now` had said."""
    former = f"{FORMER_PREFIX}{before}:"
    for old, new in ((MAIN_PREFIX, former), (f"{FORMER_PREFIX}{now}:", MAIN_PREFIX)):
        change = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?"  # noqa: S608 - our own names
        connection.execute(change, (new, len(old) + 1, len(old), old))


MARKS = PersonalRows("marks", (PersonalTable(name="marks", theirs="holds_did(name)", shown="name", order="name"),))
"""The marks of conversations that an account began: that something is to be cleared away after one of them."""


def _values(trace: Trace) -> dict[str, str]:
    listed = {"posts": trace.posts, "intents": trace.intents, "sessions": trace.sessions}
    return {
        "did": trace.person.did,
        "part": trace.person.part,
        **{name: json.dumps(sorted(keys)) for name, keys in listed.items()},
    }
