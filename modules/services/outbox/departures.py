"""When each act that waits for its turn is expected to leave, and why not sooner.

The outbox stores this after each round, so that any process that reads the database can show it. The module imports
little, because `soul status` uses it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from common.clock import iso, local, parse_iso
from modules.runtime.database import marks

if TYPE_CHECKING:
    from modules.services.outbox.types import Wait


@dataclass(frozen=True, slots=True)
class Departure:
    """When an act is expected to leave: `at` is ISO-8601, "" if it is not known; `reason` is why not sooner."""

    at: str
    reason: str


def anything_waits(connection: sqlite3.Connection) -> bool:
    """Return whether any intent waits for the owner's approval, or for its turn."""
    query = "SELECT 1 FROM intents WHERE state IN ('held', 'pending') LIMIT 1"
    return connection.execute(query).fetchone() is not None


def told(departure: Departure, now: datetime, timezone: str) -> str:
    """Return when it leaves and why, as `leaves at 14:32: 30 min after the last post`."""
    why = f": {departure.reason}" if departure.reason else ""
    if not departure.at:
        return f"cannot leave yet: {departure.reason}"
    if (at := parse_iso(departure.at)) <= now:
        return f"leaves in its turn{why}"
    moment, today = local(at, timezone), local(now, timezone).date()
    return f"leaves at {moment:%H:%M}{'' if moment.date() == today else f' on {moment:%Y-%m-%d}'}{why}"


_MARK = "departures"
SOON_S = 60.0


def departure_of(wait: Wait | None, now: datetime) -> Departure | None:
    """Return when an act with this wait leaves; None if it leaves within a minute."""
    if wait is None or (wait.ends and wait.seconds < SOON_S) or not wait.reason:
        return None
    at = (now + timedelta(seconds=wait.seconds)).replace(microsecond=0)
    return Departure(iso(at) if wait.ends else "", wait.reason)


def note(connection: sqlite3.Connection, waits: Mapping[str, Wait], now: datetime) -> None:
    """Store when each act leaves, by its id, without those that leave within a minute."""
    found = {of: asdict(departure) for of, wait in waits.items() if (departure := departure_of(wait, now))}
    text = json.dumps(found) if found else ""
    if text != marks.get(connection, _MARK):
        marks.put(connection, {_MARK: text})


def expected(connection: sqlite3.Connection) -> dict[str, Departure]:
    """Return the expected departures of the acts that wait for longer than a minute, by id."""
    text = marks.get(connection, _MARK)
    return {of: Departure(**fields) for of, fields in json.loads(text).items()} if text else {}
