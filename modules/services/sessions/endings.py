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
from modules.runtime.database import marks
from modules.services.sessions import store
from modules.services.sessions.types import Session

Remnant = Literal["media", "notes"]
REMNANTS: tuple[Remnant, ...] = get_args(Remnant)


def end(connection: sqlite3.Connection, session: Session, now: datetime) -> None:
    """End a conversation, and note what is to be cleared away after it."""
    store.end(connection, session.id, now)
    for remnant in REMNANTS:
        marks.put(connection, {_mark(remnant) + session.key: iso(now)})


def end_silent(connection: sqlite3.Connection, session: Session, now: datetime) -> bool:
    """End a conversation in which nothing was said; False where something has been said by now."""
    if store.rows(connection, session.id):
        return False
    end(connection, session, now)
    return True


def due(connection: sqlite3.Connection) -> list[tuple[Remnant, str]]:
    """What is to be cleared away, and after which session key."""
    return [
        (remnant, key)
        for remnant in REMNANTS
        for key in marks.starting_with(connection, _mark(remnant))
        if not store.goes_on(connection, key)
    ]


def settled(connection: sqlite3.Connection, remnant: Remnant, session_key: str) -> None:
    """Record that one remnant of a conversation is cleared away."""
    marks.remove(connection, _mark(remnant) + session_key)


def _mark(remnant: Remnant) -> str:
    return f"ended:{remnant}:"
