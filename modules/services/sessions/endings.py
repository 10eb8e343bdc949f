"""The cleanup after the end of a conversation: its media, and its own notes.

The transaction that ends a conversation writes a mark in `soul.db` for each of the two, which is removed when that one
is cleared away. A crash or an unreachable store therefore only delays it. If another conversation then goes on under
the same key, the two cannot be told apart, and both are cleared away when that one ends.
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
    """End a conversation and mark what is to be cleared away after it."""
    store.end(connection, session.id, now)
    for remnant in REMNANTS:
        marks.put(connection, {_mark(remnant) + session.key: iso(now)})


def end_silent(connection: sqlite3.Connection, session: Session, now: datetime) -> bool:
    """End a conversation without messages; return False if it has some by now."""
    if store.rows(connection, session.id):
        return False
    end(connection, session, now)
    return True


def due(connection: sqlite3.Connection) -> list[tuple[Remnant, str]]:
    """Return each remnant that is to be cleared away, with its session key."""
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
