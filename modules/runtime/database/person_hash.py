"""A person's DID as a hash with a secret of this home: what must still be known of somebody who is forgotten."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3

from modules.runtime.database import marks

_MARK = "tombstone_secret"
_SECRET_BYTES = 32


def person_hash(connection: sqlite3.Connection, did: str) -> str:
    """Return the hash of the account `did`, the same for as long as the database lives. A step of a transaction."""
    if not marks.get(connection, _MARK):
        marks.put_if_absent(connection, _MARK, secrets.token_hex(_SECRET_BYTES))
    return hmac.new(marks.get(connection, _MARK).encode(), did.encode(), hashlib.sha256).hexdigest()
