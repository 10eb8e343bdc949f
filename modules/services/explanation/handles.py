"""The handles of accounts that reached us, for reasons that name them by their DID."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping

from modules.services.inbox import received

# NOTE(self): a DID inside an at:// address or a link stays: there it is part of what leads to the post.
_DID = re.compile(r"(?<![\w/:.-])did:[a-z]+:[A-Za-z0-9._:%-]*[A-Za-z0-9_-](?!/)")


def known_handles(connection: sqlite3.Connection, text: str) -> dict[str, str]:
    """The newest handle of each account that `text` names by its DID, as far as it ever wrote to us."""
    found = {}
    for did in dict.fromkeys(_DID.findall(text)):
        handle = received.latest_handle(connection, did)
        if handle:
            from common.text.untrusted import one_line  # noqa: PLC0415 - takes time to load, for `soul status` too

            found[did] = one_line(handle)
    return found


def with_handles(text: str, handles: Mapping[str, str]) -> str:
    """`text` with `@handle` for each DID that is known."""
    return _DID.sub(lambda match: f"@{handles[match[0]]}" if match[0] in handles else match[0], text)
