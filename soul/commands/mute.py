"""`soul mute`: whom the SOUL leaves alone; it may be awake meanwhile, or not."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from common.clock import SystemClock
from common.errors import UsageError
from common.redact import Redactor
from common.settings import Settings
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.rights import store
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_json, write_lines


def run_mute(root: Path, did: str, *, off: bool, as_json: bool) -> None:
    """Mute the account `did`, end its mute with `off`, or list who is muted and who wants no reply.

    Raises `UsageError`. What ends a mute also ends the account's own request for no reply.
    """
    if off and not did:
        raise UsageError("Whose mute is to end? `soul mute DID --off`", remedy="`soul mute` lists who is muted.")
    if did and not did.startswith("did:"):
        raise UsageError(f"{did} is no DID", remedy="A DID looks like did:plc:abc123; a profile's address shows it.")
    settings, home = at_hand(root)
    if did:
        asyncio.run(_change(settings, home, did, off=off))
    with reading(home.database) as connection:
        muted, no_reply = store.muted(connection), store.no_reply(connection)
    if as_json:
        rows = [{"did": one, "since": since, "by": "owner"} for one, since in muted.items()]
        write_json(rows + [{"did": one, "since": since, "by": "account"} for one, since in no_reply.items()])
    elif did:
        write_lines(f"Muted {did}: nothing is said to it, and its posts are not read" if not off else f"Unmuted {did}")
    else:
        write_lines(*(f"{one} since {since}" for one, since in muted.items()))
        write_lines(*(f"{one} wants no reply since {since}" for one, since in no_reply.items()))


async def _change(settings: Settings, home: Home, did: str, *, off: bool) -> None:
    clock = SystemClock()
    database = await Database.beside(home.database)
    try:
        change = partial(store.let_speak, did=did) if off else partial(store.mute, did=did, now=clock.now())
        if await database.run(change):
            summary = f"The owner {'unmuted' if off else 'muted'} {did}"
            journal = Journal(database, SilentConsole(), clock, Redactor(settings.secrets))
            await journal.record(Entry("life", "owner", summary, line="social"))
    finally:
        await database.close()
