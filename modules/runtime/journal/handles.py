"""The handles of accounts that reached us, for reasons that name them by their DID."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

# NOTE(self): a DID inside an at:// address or a link stays: there it is part of what leads to the post.
_DID = re.compile(r"(?<![\w/:.-])did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9_-](?!/)")
_HANDLE = """
SELECT json_extract(payload, '$.author.handle') FROM pending_notifications
WHERE author_did = ? AND json_valid(payload) ORDER BY indexed_at DESC LIMIT 1
"""


def known_handles(connection: sqlite3.Connection, text: str) -> dict[str, str]:
    """The newest handle of each account that `text` names by its DID, as far as it ever wrote to us."""
    found = {}
    for did in dict.fromkeys(_DID.findall(text)):
        row = connection.execute(_HANDLE, (did,)).fetchone()
        if row is not None and row[0]:
            from common.text.untrusted import one_line  # noqa: PLC0415 - takes time to load, for `soul status` too

            found[did] = one_line(str(row[0]))
    return found


def with_handles(text: str, handles: Mapping[str, str]) -> str:
    """`text` with `@handle` for each DID that is known."""
    return _DID.sub(lambda match: f"@{handles[match[0]]}" if match[0] in handles else match[0], text)
