"""When what set out, as the rows of the outbox tell: what the pace of its acts is read from."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.policy import Lane, lane_of
from modules.services.outbox.types import ACTIVE_STATES, UNMETERED_KINDS

_ACTIVE = f"state IN ({', '.join(repr(state) for state in sorted(ACTIVE_STATES))})"
_UNMETERED_KINDS = ", ".join(repr(kind) for kind in sorted(UNMETERED_KINDS))


def last_acts(connection: sqlite3.Connection, now: datetime) -> dict[Lane, datetime]:
    """When something set out in each lane in the last day. What lies ahead, because the clock was set back, is not.

    Only of deletions it matters what they are of.
    """
    # NOTE(self): the plus keeps SQLite from looking by state: nearly all that was ever sent is done.
    rows = connection.execute(
        "SELECT kind, iif(kind = 'delete', target, '') AS of, max(sent_at) FROM intents"
        " WHERE sent_at BETWEEN ? AND ? AND +state IN ('sending', 'done') GROUP BY kind, of",
        (iso(now - timedelta(days=1)), iso(now)),
    )
    latest: dict[Lane, datetime] = {}
    for kind, target, sent_at in rows:
        lane, moment = lane_of(kind, target), parse_iso(sent_at)
        latest[lane] = max(moment, latest.get(lane, moment))
    return latest


def last_departures(connection: sqlite3.Connection, now: datetime, most: int) -> list[datetime]:
    """When the latest acts of its own accord set out for Bluesky in the last day, at most so many, newest first."""
    rows = connection.execute(
        f"SELECT sent_at FROM intents WHERE sent_at BETWEEN ? AND ? AND +state IN ('sending', 'done')"  # noqa: S608 - constants
        f" AND NOT urgent AND NOT by_owner AND kind NOT IN ({_UNMETERED_KINDS}) ORDER BY sent_at DESC LIMIT ?",
        (iso(now - timedelta(days=1)), iso(now), most),
    )
    return [parse_iso(row[0]) for row in rows]


def last_active(connection: sqlite3.Connection, kind: IntentKind) -> datetime | None:
    """When the latest living intent of a kind was accepted or, if it is later, set out."""
    query = f"SELECT max(max(created_at, coalesce(sent_at, ''))) FROM intents WHERE kind = ? AND {_ACTIVE}"  # noqa: S608 - a constant
    found = connection.execute(query, (kind,)).fetchone()[0]
    return parse_iso(found) if found else None


def active_since(connection: sqlite3.Connection, kind: IntentKind, moment: datetime) -> int:
    """How many living intents of a kind were accepted at `moment` or later."""
    query = f"SELECT count(*) FROM intents WHERE kind = ? AND created_at >= ? AND {_ACTIVE}"  # noqa: S608 - a constant
    return int(connection.execute(query, (kind, iso(moment))).fetchone()[0])
