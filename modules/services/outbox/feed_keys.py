"""What our own feed shows: the words of each record as a key, so that they are not said again. In a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from common.clock import iso

FEED_KEYS_MAX = 5000
ONCE = "once:"
"""The key of what is said only once, in whatever words, begins so."""


def in_feed(connection: sqlite3.Connection, key: str) -> bool:
    """Whether the feed already shows these words."""
    return connection.execute("SELECT 1 FROM feed_keys WHERE key = ?", (key,)).fetchone() is not None


def shows(connection: sqlite3.Connection, uri: str) -> bool:
    """Whether our own feed showed this record."""
    return connection.execute("SELECT 1 FROM feed_keys WHERE uri = ?", (uri,)).fetchone() is not None


def forget_but(connection: sqlite3.Connection, still_shown: Sequence[str]) -> None:
    """Forget what our own feed showed, but for the posts that it still shows."""
    query = "DELETE FROM feed_keys WHERE uri NOT IN (SELECT value FROM json_each(?))"
    connection.execute(query, (json.dumps(still_shown),))


def forget_words(connection: sqlite3.Connection, uri: str) -> None:
    """The record at `uri` was deleted: its words may be said again, but not what is said only once."""
    connection.execute("DELETE FROM feed_keys WHERE uri = ? AND key NOT GLOB ?", (uri, f"{ONCE}*"))


def remember(connection: sqlite3.Connection, keys: Iterable[tuple[str, str]], at: datetime) -> int:
    """Remember `(key, uri)` pairs, oldest first, and forget the oldest above the cap; returns how many were new."""
    before = connection.total_changes
    connection.executemany("INSERT OR IGNORE INTO feed_keys VALUES (?, ?, ?)", [(*pair, iso(at)) for pair in keys])
    added = connection.total_changes - before
    connection.execute(
        "DELETE FROM feed_keys WHERE rowid <= (SELECT rowid FROM feed_keys ORDER BY rowid DESC LIMIT 1 OFFSET ?)",
        (FEED_KEYS_MAX,),
    )
    return added
