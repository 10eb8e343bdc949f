"""Who asked to be forgotten, as a hash of the DID with a secret of this home. Each function is a step of a transaction.

The muted among them stay muted: by the same hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
from collections.abc import Iterable
from datetime import datetime

from common.clock import iso, parse_iso
from modules.runtime.database import marks

_MARK = "tombstone_secret"
_SECRET_BYTES = 32


def bury(connection: sqlite3.Connection, did: str, now: datetime, *, muted: bool) -> None:
    """Note that the account `did` is forgotten since `now`; a mute from before stays."""
    connection.execute(
        "INSERT INTO forgotten_people (hash, since, muted) VALUES (?, ?, ?)"
        " ON CONFLICT (hash) DO UPDATE SET since = excluded.since, muted = max(muted, excluded.muted)",
        (_hash(connection, did), iso(now), muted),
    )


def forgotten(connection: sqlite3.Connection, dids: Iterable[str]) -> dict[str, datetime]:
    """Return those of these accounts that are forgotten, each with when it was forgotten last."""
    found = {did: _row(connection, did) for did in dids}
    return {did: parse_iso(row["since"]) for did, row in found.items() if row is not None}


def muted(connection: sqlite3.Connection, dids: Iterable[str]) -> frozenset[str]:
    """Return those of these accounts that were muted when they were forgotten."""
    found = {did: _row(connection, did) for did in dids}
    return frozenset(did for did, row in found.items() if row is not None and row["muted"])


def unmute(connection: sqlite3.Connection, did: str) -> bool:
    """End the mute of a forgotten account; return whether there was one."""
    query = "UPDATE forgotten_people SET muted = 0 WHERE hash = ? AND muted = 1"
    return connection.execute(query, (_hash(connection, did),)).rowcount > 0


def _row(connection: sqlite3.Connection, did: str) -> sqlite3.Row | None:
    row: sqlite3.Row | None = connection.execute(
        "SELECT since, muted FROM forgotten_people WHERE hash = ?", (_hash(connection, did),)
    ).fetchone()
    return row


def _hash(connection: sqlite3.Connection, did: str) -> str:
    if not marks.get(connection, _MARK):
        marks.put_if_absent(connection, _MARK, secrets.token_hex(_SECRET_BYTES))
    return hmac.new(marks.get(connection, _MARK).encode(), did.encode(), hashlib.sha256).hexdigest()
