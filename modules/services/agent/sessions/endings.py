"""What is still to be cleared away after a conversation that is over: its media, and the notes that were its own.

The transaction that ends a conversation leaves a mark in `soul.db` for each of the two, which goes when that one is
cleared away. So a crash or a store out of reach only puts it off. Where another conversation goes on under the same key
by then, what belongs to the two cannot be told apart: it is cleared away when that one ends.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Literal, get_args

from common.clock import iso
from modules.services.agent.sessions import store
from modules.services.agent.sessions.types import Session

Remnant = Literal["media", "notes"]
REMNANTS: tuple[Remnant, ...] = get_args(Remnant)

_DUE = """
SELECT substr(name, length(:mark) + 1) FROM marks WHERE substr(name, 1, length(:mark)) = :mark AND NOT EXISTS
    (SELECT 1 FROM sessions WHERE key = substr(name, length(:mark) + 1) AND ended_at IS NULL) ORDER BY value, name
"""


def end(connection: sqlite3.Connection, session: Session, now: datetime) -> None:
    """End a conversation, and note what is to be cleared away after it."""
    store.end(connection, session.id, now)
    for remnant in REMNANTS:
        connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (_mark(remnant) + session.key, iso(now)))


def end_silent(connection: sqlite3.Connection, session: Session, now: datetime) -> bool:
    """End a conversation in which nothing was said; False where something has been said by now."""
    if store.rows(connection, session.id):
        return False
    end(connection, session, now)
    return True


def due(connection: sqlite3.Connection) -> list[tuple[Remnant, str]]:
    """What is to be cleared away, and after which session key."""
    return [
        (remnant, str(row[0]))
        for remnant in REMNANTS
        for row in connection.execute(_DUE, {"mark": _mark(remnant)}).fetchall()
    ]


def settled(connection: sqlite3.Connection, remnant: Remnant, session_key: str) -> None:
    """That is cleared away."""
    connection.execute("DELETE FROM marks WHERE name = ?", (_mark(remnant) + session_key,))


def _mark(remnant: Remnant) -> str:
    return f"ended:{remnant}:"
