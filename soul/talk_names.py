"""What the owner reads for the key of a conversation; the key itself is for programs."""

from __future__ import annotations

import sqlite3

from common.text.untrusted import one_line
from common.wording import purpose
from modules.services.agent.session_keys import OWNER_SESSION
from modules.services.commitments.naming import web_url
from modules.services.inbox import received

_THREAD = "bluesky:thread:"
_ROOM = "space:"
_WITH_MOST = 3


def talk_name(connection: sqlite3.Connection, key: str) -> str:
    """With whom, or about what, the conversation `key` is; the key where nothing better is known."""
    if key == OWNER_SESSION:
        return "you, in the terminal"
    if key.startswith(_THREAD):
        root = key.removeprefix(_THREAD)
        handles = [one_line(handle) for handle in received.handles_in_thread(connection, root, _WITH_MOST + 1)]
        if handles:
            others = " and others" if len(handles) > _WITH_MOST else ""
            return f"a thread on Bluesky with {', '.join(f'@{handle}' for handle in handles[:_WITH_MOST])}{others}"
        return f"a thread on Bluesky, {web_url(root) or root}"
    if key.startswith(_ROOM):
        return "the room"
    return purpose(key)
