"""Repairs a database that was restored from a backup: it does not know what was done since."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from modules.runtime.database import marks
from modules.services.inbox import messages
from modules.services.outbox import store

_NOT_LOOKED_FOR = frozenset({"direct_message", "space_chat"})
"""The kinds that have no key and are sent at the first try without checking whether they are there already."""


def make_up_for_lost(connection: sqlite3.Connection) -> None:
    """Once after a restore, prevent that anything is said again that may have been said since."""
    if not marks.get(connection, marks.RESTORED):
        return
    for intent in store.in_state(connection, "pending"):
        if intent.kind in _NOT_LOOKED_FOR:
            at = intent.first_sent_at or intent.created_at
            store.update(connection, replace(intent, state="sending", first_sent_at=at, sent_at=intent.sent_at or at))
    messages.read_anew(connection)
    marks.remove(connection, marks.RESTORED)
