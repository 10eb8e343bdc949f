"""The time zone by which the SOUL counts its days, for a command that may be started where another one holds."""

from __future__ import annotations

import sqlite3

from common.clock import is_timezone, machine_timezone
from modules.runtime.database import marks

_MARK = "budget_timezone"


def keep_zone(connection: sqlite3.Connection, timezone: str) -> None:
    """Note by which zone this life counts: `timezone`, or the machine's where it is ""."""
    marks.put(connection, {_MARK: timezone or machine_timezone()})


def zone_of(connection: sqlite3.Connection, timezone: str) -> str:
    """Return the zone by which the last life counted; `timezone` where none is known."""
    kept = marks.get(connection, _MARK)
    return kept if kept and is_timezone(kept) else timezone
