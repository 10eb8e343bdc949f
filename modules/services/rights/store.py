"""The preferences that were read, as rows of `soul.db`. Each function is one step of a transaction of its caller."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.services.rights.types import Preference

_KEPT = timedelta(days=30)


def get(connection: sqlite3.Connection, dids: Iterable[str]) -> dict[str, tuple[Preference, datetime]]:
    """Return what is known of these people, and when it was read."""
    rows = connection.execute(
        "SELECT did, preference, read_at FROM ai_preferences WHERE did IN (SELECT value FROM json_each(?))",
        (json.dumps(list(dids)),),
    )
    return {did: (Preference(**json.loads(preference)), parse_iso(read_at)) for did, preference, read_at in rows}


def put(connection: sqlite3.Connection, did: str, preference: Preference, now: datetime) -> None:
    """Write what one person declared, and delete rows that were not read again for 30 days."""
    connection.execute(
        "INSERT OR REPLACE INTO ai_preferences (did, preference, read_at) VALUES (?, ?, ?)",
        (did, json.dumps(asdict(preference)), iso(now)),
    )
    connection.execute("DELETE FROM ai_preferences WHERE read_at < ?", (iso(now - _KEPT),))
