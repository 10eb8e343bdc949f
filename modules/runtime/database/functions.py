"""Functions of ours that are called from SQL, about texts and a person's data."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from common.person import Person
from common.text.handles import named_handles
from common.text.unspaced import index_tokens


def know_texts(connection: sqlite3.Connection) -> None:
    """Give `connection` functions of a text.

    `named_handles`: the handles that it names as accounts, as a JSON list; `index_tokens`: each after a space.
    """
    connection.create_function("named_handles", 1, lambda text: json.dumps(named_handles(text)), deterministic=True)
    connection.create_function(
        "index_tokens", 1, lambda text: "".join(f" {token}" for token in index_tokens(text)), deterministic=True
    )


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
