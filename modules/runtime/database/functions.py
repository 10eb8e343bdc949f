"""Functions of ours that are called from SQL, about what is a person's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from common.person import Person
from common.text.handles import named_handles


def know_handles(connection: sqlite3.Connection) -> None:
    """Give `connection` a function that returns the handles that a text names as accounts, as a JSON list."""
    connection.create_function("named_handles", 1, lambda text: json.dumps(named_handles(text)), deterministic=True)


def know_person(connection: sqlite3.Connection, person: Person, without_copies: Callable[[str], str] = str) -> None:
    """Give `connection` functions about `person`.

    `is_in(dids)`: whether a row is tied to them; `holds_did(text, ...)`; `named(text, ...)`: whether a text holds the
    DID or a handle, to tell of it; `called(text)`: whether it holds a display name, to tell of it; `redacted(text)` and
    `redacted_json(text)`: a text without them; `without_copies(text)`: that of a trace; and `json_field`.
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
    """Return the text at `path` in a JSON object, what is no text as JSON; None where nothing can be read.

    Of a row that cannot be read nothing is known, and the statement goes on: `json_extract` would end it.
    """
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return None
    # NOTE(self): half a surrogate pair has no UTF-8, and SQLite takes none.
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="replace").decode()
