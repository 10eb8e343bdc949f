"""Whether anything waits for the owner, for readers that cannot afford to load what an intent is made of."""

from __future__ import annotations

import sqlite3


def waits_for_owner(connection: sqlite3.Connection) -> bool:
    """Return whether any intent waits for the owner's approval."""
    return connection.execute("SELECT 1 FROM intents WHERE state = 'held' LIMIT 1").fetchone() is not None
