"""Whose home this is: the Bluesky account by its DID, and what happens when `.env` names another.

What waits to leave was made for one account, and what may have left can be looked for only there.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.types import Actor
from common.clock import Clock, local, parse_iso
from common.errors import ConfigError
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox import store
from modules.services.outbox.types import NON_BLUESKY_KINDS, Intent, IntentState

_DID, _HANDLE = "account_did", "account_handle"
_OPEN: tuple[IntentState, ...] = ("held", "pending", "sending")


async def settle_account(database: Database, journal: Journal, clock: Clock, *, account: Actor, timezone: str) -> None:
    """Remember whose home this is, after each login.

    Raises:
        ConfigError: it is another account's, and something made for that one still waits to leave.

    """
    now = clock.now()
    former, waiting = await database.run(lambda connection: (_known(connection), _waiting(connection, now)))
    if former is None or former.did == account.did:
        await database.run(lambda connection: _remember(connection, account))
        return
    if waiting:
        raise _not_ours(former, account, waiting, timezone)

    def take_over(connection: sqlite3.Connection) -> tuple[None, Entry]:
        _remember(connection, account)
        store.mark_all_undone(connection)
        summary = f"This home now belongs to {_named(account)}"
        reason = f"it was {_named(former)}'s, and nothing of that account waits to leave"
        return None, Entry("life", "start", summary, line="warn", reason=reason)

    await journal.record_with(take_over)


def _known(connection: sqlite3.Connection) -> Actor | None:
    known = marks.get_all(connection, (_DID, _HANDLE))
    return Actor(known[_DID], known.get(_HANDLE, "")) if _DID in known else None


def _remember(connection: sqlite3.Connection, account: Actor) -> None:
    marks.put(connection, {_DID: account.did, _HANDLE: account.handle})


def _waiting(connection: sqlite3.Connection, now: datetime) -> list[Intent]:
    """What was made for Bluesky, has not come to its end, and has not lost its sense."""
    found = [intent for state in _OPEN for intent in store.in_state(connection, state)]
    return [intent for intent in found if intent.kind not in NON_BLUESKY_KINDS and parse_iso(intent.expires_at) > now]


def _not_ours(former: Actor, account: Actor, waiting: Sequence[Intent], timezone: str) -> ConfigError:
    counts = Counter("draft" if intent.state == "held" else intent.kind for intent in waiting)
    what = ", ".join(f"{kind} ({count})" for kind, count in sorted(counts.items()))
    until = max(local(parse_iso(intent.expires_at), timezone) for intent in waiting)
    drafts = "Or reject the drafts (`soul drafts reject ID…`). " if counts["draft"] else ""
    return ConfigError(
        f"This home belongs to {_named(former)}, but .env logs in as {_named(account)};"
        f" of the former there still wait: {what}",
        remedy=f"Put {former.handle or former.did} back as AGENT_BLUESKY_USERNAME until they have left. {drafts}"
        f"The last of them loses its sense at {until:%Y-%m-%d %H:%M}; from then on the new account can have this home.",
    )


def _named(account: Actor) -> str:
    return f"@{account.handle} ({account.did})"
