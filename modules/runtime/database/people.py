"""Declares once what a table holds about a person, and gives SQL our functions about people.

Of a person who was forgotten only a hash of the DID remains, made with a secret of this home.
"""

import hashlib
import hmac
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from common.person import Held, Person, Trace
from common.session_keys import FORMER_PREFIX, MAIN_PREFIX
from modules.runtime.database import marks

_MARK = "tombstone_secret"
_SECRET_BYTES = 32


def person_hash(connection: sqlite3.Connection, did: str) -> str:
    """Return the hash of the account `did`, the same for as long as the database exists. A step of a transaction."""
    if not marks.get(connection, _MARK):
        marks.put_if_absent(connection, _MARK, secrets.token_hex(_SECRET_BYTES))
    return hmac.new(marks.get(connection, _MARK).encode(), did.encode(), hashlib.sha256).hexdigest()


_DAY = len("2026-01-31")


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalTable:
    """The rows of one table that belong to a person, and what other rows hold about a person.

    All of it is SQL. It may name `:did`, `:part` and, as JSON lists, `:posts`, `:intents` and `:sessions` of the trace.
    It may use the functions of `modules/runtime/database/people.py`.

    Attributes:
        name: the table.
        theirs: the condition of the person's rows, which are deleted; "" if no row belongs to a person.
        shown: what such a row says, as text; "" if it is not reported.
        tells: the condition of those of them that say something; the others are deleted, but not reported.
        at: when a row was written, ISO-8601; '' if that is not known.
        order: the order of what is reported.
        redacts: expressions, by column, that put somebody in the place of the person in other rows.
        only: the condition of the other rows that are redacted.
        also: the condition of further ones, which hold no DID.
        shown_of_others: what a redacted row says; "" if it is not reported.
        named: a query for where words of the owner or of ours name the person; these stay.

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
        """The queries for what the rows say."""
        if self.shown:
            those = f"{self.theirs} AND {self.tells}"
            yield f"SELECT {self.shown}, {self.at} FROM {self.name} WHERE {those} ORDER BY {self.order}"  # noqa: S608 - constants
        if self.shown_of_others:
            others = f"{self._of_others} AND NOT ({self.theirs})"
            yield f"SELECT {self.shown_of_others}, {self.at} FROM {self.name} WHERE {others} ORDER BY {self.order}"  # noqa: S608 - constants

    @property
    def changes(self) -> Iterator[str]:
        """The statements that remove the person."""
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
    """What one store holds about people. Each method is one step of a transaction of its caller.

    The connection must know the person (`know_person`).

    Attributes:
        store: its name in reports.
        tables: its tables, in the order in which they are changed.
        before: statements that run before a person's rows are deleted, and may also name `:hash`.
        copies: statements that remove copies of the trace's deleted memories from rows that stay.
        counts_on: called before these statements, to keep what must still be counted.
        after: statements that run last.

    """

    store: str
    tables: tuple[PersonalTable, ...]
    before: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    counts_on: Callable[[sqlite3.Connection, Trace], None] = lambda *_: None
    after: tuple[str, ...] = ()

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return what the rows say about the person."""
        values, told = _values(trace), [one for table in self.tables for one in table.queries if trace.person.did]
        rows = [(row[0], str(row[1])[:_DAY]) for query in told for row in connection.execute(query, values)]
        return Held(self.store, len(rows), tuple(f"{day} {text}".strip() for text, day in rows if text))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete the person's rows, and redact others; return how many rows changed."""
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
    """Rename the keys of the private talk with the owner `before`, and bring back those of the owner `now`."""
    former = f"{FORMER_PREFIX}{before}:"
    for old, new in ((MAIN_PREFIX, former), (f"{FORMER_PREFIX}{now}:", MAIN_PREFIX)):
        change = f"UPDATE {table} SET {column} = ? || substr({column}, ?) WHERE substr({column}, 1, ?) = ?"  # noqa: S608 - our own names
        connection.execute(change, (new, len(old) + 1, len(old), old))


MARKS = PersonalRows("marks", (PersonalTable(name="marks", theirs="holds_did(name)", shown="name", order="name"),))
"""Marks named by an account: something has to be cleared away after a conversation that the account began."""


def _values(trace: Trace) -> dict[str, str]:
    listed = {"posts": trace.posts, "intents": trace.intents, "sessions": trace.sessions}
    return {
        "did": trace.person.did,
        "part": trace.person.part,
        **{name: json.dumps(sorted(keys)) for name, keys in listed.items()},
    }


def know_person(connection: sqlite3.Connection, person: Person, without_copies: Callable[[str], str] = str) -> None:
    """Give `connection` functions about `person`.

    `is_in(dids)`: whether a row is tied to them; `holds_did(text, ...)`; `named(text, ...)`: whether a text holds the
    DID or a handle, and `called(text)`: a display name, both only to report it; `without_did(dids)`, `redacted(text)`
    and `redacted_json(text)`: a text without them; `without_copies(text)`: the given function; and `json_field`.
    """
    connection.create_function("json_field", -1, json_field, deterministic=True)
    connection.create_function("without_copies", 1, without_copies)
    connection.create_function("is_in", 1, person.is_in)
    connection.create_function("holds_did", -1, person.holds_did)
    connection.create_function("named", -1, person.is_named_in)
    connection.create_function("called", 1, person.is_called_in)
    connection.create_function("without_did", 1, lambda text: person.without_did(text) if text else text)
    connection.create_function("redacted", 1, lambda text: person.redacted(text) if text else text)
    connection.create_function("redacted_json", 1, lambda text: person.redacted_json(text) if text else text)


def json_field(text: object, *path: str) -> str | None:
    """Return the text at `path` in a JSON object, other values as JSON; None if there is none, or it cannot be read.

    A row that cannot be read does not end the statement, as it would with `json_extract`.
    """
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return None
    # NOTE(self): half a surrogate pair cannot be UTF-8, and SQLite refuses it.
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="replace").decode()
