"""Functions of ours that the migrations of `modules/runtime/database/schema.py` call from SQL."""

from __future__ import annotations

import sqlite3

from common.text.unspaced import index_tokens, touching_words


def add_functions(connection: sqlite3.Connection) -> None:
    """Let `connection` run the migrations, which call functions of ours."""
    connection.create_function("unspaced_tokens", 1, unspaced_tokens, deterministic=True)


def unspaced_tokens(text: str) -> str:
    """What stands in `shelf` for text that is written without spaces, with a space before each token."""
    tokens = index_tokens(text)
    return "".join(f" {token}" for token in (*tokens, *touching_words(text))) if tokens else ""
