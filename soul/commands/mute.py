"""`soul mute`: mutes accounts, ends mutes and lists them, whether the SOUL is awake or not."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock
from common.errors import UsageError
from common.person import account_words
from common.settings import Settings
from common.text.untrusted import one_line
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.services.explanation.story import handle_of
from modules.services.peers.relationships import Relationship, Relationships
from modules.services.rights import store
from modules.services.rights.mute import change_mute, withdrawn_line
from soul.commands.at_hand import at_hand
from soul.commands.beside import journal_beside
from soul.commands.handles import did_of
from soul.commands.options import Muted
from soul.terminal.output import write_answer
from soul.terminal.wording import moment

_MET = "relationships.json"


def run_mute(
    root: Path,
    who: Muted = "",
    *,
    off: Annotated[bool, typer.Option("--off", help="Unmute the account.")] = False,
    as_json: bool,
) -> None:
    """Mute the account `who` (a DID or a handle), end its mute with `off`, or list who is muted and who wants no reply.

    The end of a mute also ends the account's own request for no reply. Raises `UsageError`.
    """
    if off and not who:
        raise UsageError("Whose mute is to end? `soul mute WHO --off`", remedy="`soul mute` lists who is muted.")
    settings, home = at_hand(root)
    changed = asyncio.run(mute_account(settings, home, who, off=off)) if who else ""
    met, zone = _met(home), settings.soul_timezone
    with reading(home.database) as connection:
        muted, no_reply = store.muted(connection), store.no_reply(connection)
        names = {one: handle_of(connection, one) or _handle(met.get(one)) for one in {*muted, *no_reply}}
    shown = {one: f"@{handle} ({one})" if handle else one for one, handle in names.items()}
    rows = [{"did": one, "since": since, "by": "owner"} for one, since in muted.items()]
    rows += [{"did": one, "since": since, "by": "account"} for one, since in no_reply.items()]
    lines = [f"{shown[one]} muted since {moment(since, zone)}" for one, since in muted.items()]
    lines += [f"{shown[one]} wants no reply since {moment(since, zone)}" for one, since in no_reply.items()]
    write_answer(rows, [changed] if changed else lines, as_json=as_json)


def _met(home: Home) -> Relationships:
    return Relationships(home.memory / _MET, SystemClock())


def _handle(one: Relationship | None) -> str:
    return one_line(one.handle) if one else ""


async def mute_account(settings: Settings, home: Home, who: str, *, off: bool) -> str:
    """Mute the account `who`, or with `off` end its mute and its own request for no reply; return a line on it.

    Raises `UsageError`.
    """
    did, clock = await asyncio.to_thread(did_of, settings, home, who, now=True), SystemClock()
    if not did:
        raise UsageError(f"Nobody is known by {who}", remedy="Check the handle, or give the DID: did:plc:abc123.")
    async with journal_beside(settings, home, clock) as (database, journal):
        handle = await database.run(partial(handle_of, did=did)) or _handle(_met(home).get(did))
        handle = handle or ("" if who == did else who.removeprefix("@"))
        withdrawn, entries = await database.run(partial(change_mute, did=did, now=clock.now(), off=off, handle=handle))
        for entry in entries:
            await journal.record(entry)
    whom = account_words(handle, did)
    told = f"Muted {whom}: the SOUL does not answer it, and does not read its posts"
    if off:
        told = f"Unmuted {whom}" if entries else f"{whom} was not muted, and had not asked for no replies"
    return ". ".join(filter(None, (told, withdrawn_line(withdrawn))))
