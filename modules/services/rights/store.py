"""The rows of `soul.db` about people's preferences: declared preferences, mutes by the owner, requests for no reply.

Each function is one step of a transaction that its caller opened.
"""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.services.rights import tombstones
from modules.services.rights.policy import Preference

_KEPT = timedelta(days=30)


def get(connection: sqlite3.Connection, dids: Iterable[str]) -> dict[str, tuple[Preference, datetime]]:
    """Return the known preferences by DID, each with when it was read."""
    rows = connection.execute(
        "SELECT did, preference, read_at FROM ai_preferences WHERE did IN (SELECT value FROM json_each(?))",
        (json.dumps(list(dids)),),
    )
    return {did: (Preference(**json.loads(preference)), parse_iso(read_at)) for did, preference, read_at in rows}


def put(connection: sqlite3.Connection, did: str, preference: Preference, now: datetime) -> None:
    """Store what one person declared, and delete rows that were not read again for 30 days."""
    connection.execute(
        "INSERT OR REPLACE INTO ai_preferences (did, preference, read_at) VALUES (?, ?, ?)",
        (did, json.dumps(asdict(preference)), iso(now)),
    )
    connection.execute("DELETE FROM ai_preferences WHERE read_at < ?", (iso(now - _KEPT),))


def mute(connection: sqlite3.Connection, did: str, now: datetime) -> bool:
    """Mute a person; return whether they were not muted before."""
    done = connection.execute("INSERT OR IGNORE INTO muted_people (did, since) VALUES (?, ?)", (did, iso(now)))
    return done.rowcount > 0


def unmute(connection: sqlite3.Connection, did: str) -> bool:
    """End a mute; return whether there was one."""
    ended = tombstones.unmute(connection, did)
    return connection.execute("DELETE FROM muted_people WHERE did = ?", (did,)).rowcount > 0 or ended


def let_speak(connection: sqlite3.Connection, did: str) -> bool:
    """End a mute, or without one the request for no reply, for the owner; return whether there was either."""
    return unmute(connection, did) or allow_replies(connection, did)


def muted_among(connection: sqlite3.Connection, dids: Iterable[str]) -> frozenset[str]:
    """Return the accounts that are muted, including forgotten ones."""
    asked = frozenset(dids)
    return asked & muted(connection).keys() | tombstones.muted(connection, asked)


def want_no_reply(connection: sqlite3.Connection, did: str, now: datetime) -> bool:
    """Record that a person asked for no reply; return whether that is new."""
    if tombstones.want_no_reply(connection, did):
        return True
    query = "INSERT OR IGNORE INTO no_reply_people (did, since) VALUES (?, ?)"
    return connection.execute(query, (did, iso(now))).rowcount > 0


def allow_replies(connection: sqlite3.Connection, did: str) -> bool:
    """End a person's request for no reply; return whether there was one."""
    ended = tombstones.allow_replies(connection, did)
    return connection.execute("DELETE FROM no_reply_people WHERE did = ?", (did,)).rowcount > 0 or ended


def no_reply_among(connection: sqlite3.Connection, dids: Iterable[str]) -> frozenset[str]:
    """Return the accounts that asked for no reply, including forgotten ones."""
    asked = frozenset(dids)
    return asked & no_reply(connection).keys() | tombstones.no_reply(connection, asked)


def no_reply(connection: sqlite3.Connection) -> dict[str, str]:
    """Return when each account asked for no reply (ISO-8601 UTC), by DID, oldest first."""
    rows = connection.execute("SELECT did, since FROM no_reply_people ORDER BY since, did")
    return {str(row[0]): str(row[1]) for row in rows}


def muted(connection: sqlite3.Connection) -> dict[str, str]:
    """Return since when each account is muted (ISO-8601 UTC), by DID, oldest first."""
    rows = connection.execute("SELECT did, since FROM muted_people ORDER BY since, did")
    return {str(row[0]): str(row[1]) for row in rows}
