"""The handles of accounts, for texts that name them by their DID: the record keeps DIDs, people read handles."""

from __future__ import annotations

import sqlite3

from common.person import INVALID_HANDLE
from common.text.handles import named_dids, with_handles
from modules.services.inbox import messages, received
from modules.services.outbox import store
from modules.services.outbox.bodies import FollowBody


def handle_of(connection: sqlite3.Connection, did: str) -> str:
    """Return the newest handle that the home holds of an account, in one line; "" if it holds none.

    It is known from what the account wrote to us, else from a follow of ours.
    """
    talk = messages.talk_with(connection, did)
    follows = (one.body for one in store.by_target(connection, "follow", did))
    seen = (
        received.latest_handle(connection, did),
        talk.handle if talk else "",
        *(body.handle for body in follows if isinstance(body, FollowBody)),
    )
    handle = next((one for one in seen if one and one != INVALID_HANDLE), "")
    if not handle:
        return ""
    from common.text.untrusted import one_line  # noqa: PLC0415 - takes time to load, for `soul status` too

    return one_line(handle)


def known_handles(connection: sqlite3.Connection, text: str) -> dict[str, str]:
    """Return the handle by DID of each account that `text` names by its DID, as far as the home holds one."""
    return {did: handle for did in named_dids(text) if (handle := handle_of(connection, did))}


def named(connection: sqlite3.Connection, text: str) -> str:
    """Return `text` with `@handle` for each DID of which the home holds the handle."""
    return with_handles(text, known_handles(connection, text))
