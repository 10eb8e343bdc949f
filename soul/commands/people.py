"""`soul know`, `soul forget` and `soul mute`: what the home holds about somebody, its deletion, and muted accounts.

Muting works whether the SOUL is awake or not.
"""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from adapters.atproto.session import SessionFile
from common.clock import Clock, SystemClock
from common.errors import SoulError, Transient, UsageError
from common.person import Person, account_words
from common.redact import Redactor
from common.settings import Settings
from common.text.untrusted import one_line
from common.wording import counted, number
from modules.runtime.console import Console, SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home, HomeLock, lock_holder
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.watched_storage import storage_of
from modules.services.explanation.story import handle_of
from modules.services.identity.history import kept_documents
from modules.services.identity.keeper import SelfKeeper
from modules.services.relationships import Relationships, get
from modules.services.rights import store
from modules.services.rights.forgetting import Forgetting
from modules.services.rights.mute import change_mute, withdrawn_line
from modules.services.rights.records import Forgotten, entry_of
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from soul.commands.at_hand import at_hand
from soul.commands.beside import journal_beside
from soul.commands.handles import did_of
from soul.commands.options import Muted, Who
from soul.terminal.output import printable, write_answer, write_lines
from soul.terminal.plain import PlainConsole
from soul.terminal.wording import moment

_COUNTED = {
    "acts": "acts (also those not done)",
    "work": "turns about posts and such",
    "conversations": "lines of conversations",
    "memories": "memories (also of others)",
    "rights": "wishes and declarations",
    "store": "archives",
}
_TO_FORGET = ("AGENT_", "ATPROTO_", "MEMORY_DIR", "OWNER_", "STORAGE_")
"""How the settings begin that say who must not be forgotten and where everything is stored."""
_WORDS_SHOWN = 5
_WORDS_CHARS = 160


def run_know(root: Path, who: Who, *, as_json: bool) -> None:
    """Print what each store of the home holds about `who`. Raises `SoulError` if it cannot be read."""
    settings, home = at_hand(root)
    did = did_of(settings, home, who)

    async def know() -> None:
        async with forgetting_beside(settings, home) as forgetting:
            trace = await forgetting.trace(did or who)
            held = await forgetting.about(trace)
        lines = [_named(trace.person)]
        if not did:
            lines.append("Entries under its DID are not shown: no DID was found. Give the DID instead: did:plc:abc123")
        lines.append("Entries of each store (one post or act stands in several of them):")
        for one in (one for one in held if one.count):
            lines.append(f"{_COUNTED.get(one.store, one.store):<28} {number(one.count)}")
            lines += [f"    {printable(words)[:_WORDS_CHARS]}" for words in one.words[:_WORDS_SHOWN]]
        found = {"person": asdict(trace.person), "held": [asdict(one) for one in held]}
        write_answer(found, lines, as_json=as_json)

    asyncio.run(know())


def run_forget(
    root: Path,
    who: Who,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: bool,
    ask: Callable[[str], str] | None = None,
) -> None:
    """Delete all that the home holds about `who`, or let the SOUL do so if it is awake. Raises `SoulError`.

    Unless `yes`, `ask` must answer "yes"; without `ask`, the terminal is asked. Raises `UsageError` if there is none.
    """
    settings, home = at_hand(root, needs=_TO_FORGET)
    clock = SystemClock()
    session = SessionFile(
        home.session, service_url=settings.atproto_service_url, identifier=settings.agent_bluesky_username
    )
    stored = session.load().session
    own_did = stored.did if stored else None
    did = did_of(settings, home, who)

    async def request() -> bool:
        async with forgetting_beside(settings, home) as forgetting:
            trace = await forgetting.trace(did or who)
            count = sum(one.count for one in await forgetting.about(trace))
        person, own_name = trace.person, settings.agent_bluesky_username.lower()
        is_own = who.lstrip("@").lower() == own_name or (own_did is not None and person.did == own_did)
        if is_own or person.did == settings.owner_bluesky_social_handle_did:
            raise UsageError(f"{who} is the owner or the SOUL itself", remedy="`soul run --flush-all` forgets all.")
        if not person.did or (not count and not who.startswith("did:")):
            raise UsageError(f"Nobody is known by {who}", remedy="`soul know WHO` tells what is held; a DID works too.")
        if not yes and not await asyncio.to_thread(_is_sure, _named(person), count, ask):
            return False
        ForgetRequests(home.memory).give(ForgetRequest(person.did, clock.now()))
        return True

    # NOTE(self): checked first, since a SOUL that is awake restarts as soon as it sees the request.
    is_awake = lock_holder(home) is not None
    if not asyncio.run(request()):
        text = "Nothing was forgotten"
        write_answer({"done": False, "said": text}, [text], as_json=as_json)
        return
    if is_awake:
        text = "The SOUL is awake: it starts anew within two minutes, and forgets"
        write_answer({"done": False, "said": text}, [text], as_json=as_json)
        return
    done, lines = carry_out_requests(settings, home), []
    for one in done:
        lines.append(f"Forgotten: {one}")
        lines += [f"Still named in {place}, which is yours to change" for place in one.left]
    write_answer({"done": True, "forgotten": [asdict(one) for one in done]}, lines, as_json=as_json)


def _named(person: Person) -> str:
    return " ".join([person.did or "no DID known", *(f"@{one}" for one in person.handles)])


def _is_sure(whom: str, count: int, ask: Callable[[str], str] | None) -> bool:
    """Return whether the owner types yes. Raises `UsageError` if nobody can be asked."""
    if ask is None and not sys.stdin.isatty():
        raise UsageError("`soul forget` asks back, and nobody is there to answer", remedy="Add --yes.")
    said = (ask or input)(f"{printable(whom)}: {counted(count, 'entry', 'entries')} will be deleted. Type yes: ")
    return said.strip() == "yes"


def carry_out_requests(
    settings: Settings, home: Home, clock: Clock | None = None, console: Console | None = None
) -> list[Forgotten]:
    """Carry out the forget requests that are due, with the home locked; return what was forgotten.

    A request that fails does not stop the others and stays for the next start; `Transient` is raised at the end.
    The `console` shows what is left for the owner to do; without one, nothing is shown.
    """
    clock = clock or SystemClock()
    requests = ForgetRequests(home.memory)
    if not requests.due(clock.now()):
        return []
    with HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()):
        return asyncio.run(_carry_out(settings, home, clock, console or SilentConsole()))


def forget_who_is_due(settings: Settings, home: Home) -> None:
    """Carry out the forget requests that are due before a life begins; a failure is printed and does not stop it."""
    console = PlainConsole(SystemClock(), timezone=settings.soul_timezone)
    write_lines(*ForgetRequests(home.memory).set_unreadable_aside())
    try:
        carry_out_requests(settings, home, console=console)
    except Transient as error:
        write_lines(f"Somebody is not forgotten yet, and is at the next start: {error}")


async def _carry_out(settings: Settings, home: Home, clock: Clock, console: Console) -> list[Forgotten]:
    async with await Database.open(home.database, MIGRATIONS) as database:
        await Relationships(home.memory / "relationships.json", database, clock).open()
        forgetting = _forgetting(settings, home, database, clock)
        redactor, requests = Redactor(settings.secrets), ForgetRequests(home.memory)
        journal = Journal(database, console, clock, redactor)
        if database.notice:
            await journal.record(Entry("error", "start", database.notice, line="error"))
        keepers = [
            SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor, document=one)
            for one in kept_documents(home)
        ]
        done: list[Forgotten] = []
        failed: list[str] = []
        for request in requests.due(clock.now()):
            try:
                done.append(await forgetting.carry_out(request, *keepers))
                # NOTE(self): recorded first: a kill in between records it twice, instead of never.
                await journal.record(entry_of(done[-1]))
                requests.done(request)
            except Exception as error:
                why = str(error) if isinstance(error, SoulError) else f"{type(error).__name__}: {error}"
                failed.append(one_line(Person(request.did).without_did(why), _WORDS_CHARS))
        if failed:
            raise Transient("; ".join(dict.fromkeys(failed)))
    return done


@asynccontextmanager
async def forgetting_beside(settings: Settings, home: Home) -> AsyncIterator[Forgetting]:
    """Yield a `Forgetting` for a home in which a SOUL may be awake. Raises `SoulError`."""
    async with await Database.beside(home.database) as database:
        yield _forgetting(settings, home, database, SystemClock())


def _forgetting(settings: Settings, home: Home, database: Database, clock: Clock) -> Forgetting:
    storage = storage_of(settings, home.store)
    own = (settings.agent_bluesky_username, settings.owner_bluesky_social_handle)
    return Forgetting(home, database, storage, settings.agent_name, clock, own_handles=lambda: own)


def run_mute(
    root: Path,
    who: Muted = "",
    *,
    off: Annotated[bool, typer.Option("--off", help="Unmute the account.")] = False,
    as_json: bool,
) -> None:
    """Mute the account `who` (a DID or a handle), end its mute with `off`, or list who is muted and who wants no reply.

    Without a mute, `off` ends the account's own request for no reply. Raises `UsageError`.
    """
    if off and not who:
        raise UsageError("Whose mute is to end? `soul mute WHO --off`", remedy="`soul mute` lists who is muted.")
    settings, home = at_hand(root)
    changed = asyncio.run(mute_account(settings, home, who, off=off)) if who else ""
    zone = settings.soul_timezone
    with reading(home.database) as connection:
        muted, no_reply = store.muted(connection), store.no_reply(connection)
        names = {one: _known_handle(connection, one) for one in {*muted, *no_reply}}
    shown = {one: f"@{handle} ({one})" if handle else one for one, handle in names.items()}
    rows = [{"did": one, "since": since, "by": "owner"} for one, since in muted.items()]
    rows += [{"did": one, "since": since, "by": "account"} for one, since in no_reply.items()]
    lines = [f"{shown[one]} muted since {moment(since, zone)}" for one, since in muted.items()]
    lines += [f"{shown[one]} wants no reply since {moment(since, zone)}" for one, since in no_reply.items()]
    write_answer(rows, [changed] if changed else lines, as_json=as_json)


def _known_handle(connection: sqlite3.Connection, did: str) -> str:
    met = get(connection, did)
    return handle_of(connection, did) or (one_line(met.handle) if met else "")


async def mute_account(settings: Settings, home: Home, who: str, *, off: bool) -> str:
    """Mute the account `who`, or with `off` end its mute, without one its own request for no reply; return a line.

    Raises `UsageError`.
    """
    did, clock = await asyncio.to_thread(did_of, settings, home, who, now=True), SystemClock()
    if not did:
        raise UsageError(f"Nobody is known by {who}", remedy="Check the handle, or give the DID: did:plc:abc123.")
    async with journal_beside(settings, home, clock) as (database, journal):
        handle = await database.run(partial(_known_handle, did=did))
        handle = handle or ("" if who == did else who.removeprefix("@"))
        withdrawn, entries = await database.run(partial(change_mute, did=did, now=clock.now(), off=off, handle=handle))
        wants_none = await database.run(partial(store.no_reply_among, dids=[did]))
        for entry in entries:
            await journal.record(entry)
    whom = account_words(handle, did)
    told = f"Muted {whom}: the SOUL does not answer it, and does not read its posts"
    if off:
        told = f"Unmuted {whom}" if entries else f"{whom} was not muted, and had not asked for no replies"
        told += ". It asked for no replies itself, which holds until you unmute it once more" if wants_none else ""
    return ". ".join(filter(None, (told, withdrawn_line(withdrawn))))
