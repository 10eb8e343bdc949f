"""Forgotten people, each as a hash of the DID with a secret of this home. Each function is a transaction step.

The same hash keeps the muted among them muted, and those who asked for no reply without one.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from common.clock import iso, parse_iso
from modules.runtime.database.people import person_hash


def bury(connection: sqlite3.Connection, did: str, now: datetime, *, muted: bool, no_reply: bool = False) -> None:
    """Record that the account `did` is forgotten since `now`; an earlier mute or request for no reply stays."""
    connection.execute(
        "INSERT INTO forgotten_people (hash, since, muted, no_reply) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (hash) DO UPDATE SET since = excluded.since, muted = max(muted, excluded.muted),"
        " no_reply = max(no_reply, excluded.no_reply)",
        (person_hash(connection, did), iso(now), muted, no_reply),
    )


def forgotten(connection: sqlite3.Connection, dids: Iterable[str]) -> dict[str, datetime]:
    """Return the forgotten accounts, each with when it was last forgotten."""
    found = {did: _row(connection, did) for did in dids}
    return {did: parse_iso(row["since"]) for did, row in found.items() if row is not None}


def muted(connection: sqlite3.Connection, dids: Iterable[str]) -> frozenset[str]:
    """Return the accounts that were muted when they were forgotten."""
    found = {did: _row(connection, did) for did in dids}
    return frozenset(did for did, row in found.items() if row is not None and row["muted"])


def unmute(connection: sqlite3.Connection, did: str) -> bool:
    """End the mute of a forgotten account; return whether there was one."""
    query = "UPDATE forgotten_people SET muted = 0 WHERE hash = ? AND muted = 1"
    return connection.execute(query, (person_hash(connection, did),)).rowcount > 0


def no_reply(connection: sqlite3.Connection, dids: Iterable[str]) -> frozenset[str]:
    """Return the forgotten accounts that asked for no reply."""
    found = {did: _row(connection, did) for did in dids}
    return frozenset(did for did, row in found.items() if row is not None and row["no_reply"])


def want_no_reply(connection: sqlite3.Connection, did: str) -> bool:
    """Record that a forgotten account asks for no reply; return False if it is not forgotten or asked before."""
    query = "UPDATE forgotten_people SET no_reply = 1 WHERE hash = ? AND no_reply = 0"
    return connection.execute(query, (person_hash(connection, did),)).rowcount > 0


def allow_replies(connection: sqlite3.Connection, did: str) -> bool:
    """End a forgotten account's request for no reply; return whether there was one."""
    query = "UPDATE forgotten_people SET no_reply = 0 WHERE hash = ? AND no_reply = 1"
    return connection.execute(query, (person_hash(connection, did),)).rowcount > 0


def _row(connection: sqlite3.Connection, did: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT since, muted, no_reply FROM forgotten_people WHERE hash = ?", (person_hash(connection, did),)
    ).fetchone()
    return row
