"""Functions of ours that are called from SQL: by `modules/runtime/database/schema.py`, and to find a person's rows."""

from __future__ import annotations

import sqlite3

from common.person import Person
from common.text.unspaced import index_tokens, touching_words


def add_functions(connection: sqlite3.Connection) -> None:
    """Let `connection` run the migrations, which call functions of ours."""
    connection.create_function("unspaced_tokens", 1, unspaced_tokens, deterministic=True)


def know_person(connection: sqlite3.Connection, person: Person) -> None:
    """Give `connection` the function `names_person(text, ...)`: whether one of the texts names `person`."""
    connection.create_function("names_person", -1, person.is_named_in)


def unspaced_tokens(text: str) -> str:
    """What stands in `shelf` for text that is written without spaces, with a space before each token."""
    tokens = index_tokens(text)
    return "".join(f" {token}" for token in (*tokens, *touching_words(text))) if tokens else ""
