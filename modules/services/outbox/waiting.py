"""What waits in the outbox, for readers that cannot afford to load what an intent is made of."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from common.clock import local, parse_iso


@dataclass(frozen=True, slots=True)
class Departure:
    """When an act is expected to leave: `at` is ISO-8601, "" where nobody knows; `reason` is why not sooner."""

    at: str
    reason: str


def anything_waits(connection: sqlite3.Connection) -> bool:
    """Return whether any intent waits for the owner's approval, or for its turn."""
    query = "SELECT 1 FROM intents WHERE state IN ('held', 'pending') LIMIT 1"
    return connection.execute(query).fetchone() is not None


def told(departure: Departure, now: datetime, timezone: str) -> str:
    """Return when it leaves and why, as `leaves at 14:32: 30 min after the last post`."""
    if not departure.at:
        return f"cannot leave yet: {departure.reason}"
    if (at := parse_iso(departure.at)) <= now:
        return f"leaves in its turn: {departure.reason}"
    moment, today = local(at, timezone), local(now, timezone).date()
    return f"leaves at {moment:%H:%M}{'' if moment.date() == today else f' on {moment:%Y-%m-%d}'}: {departure.reason}"
