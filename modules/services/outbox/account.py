"""The SOUL's account on Bluesky: its login, facts about it and the listed peers for the rules, and the home's account.

Waiting acts were made for one account, and a lost try can be looked for only there; so the account's DID is stored, and
that of each listed peer (`modules/services/pinned_names.py`). The rest is kept in memory and asked for at each start;
until the answer comes, the account counts as young.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from typing import Protocol

import httpx

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor
from common.clock import Clock, local, parse_iso, parse_iso_or_none
from common.errors import Auth, ConfigError, Fatal, Transient
from common.intervals import Pace
from common.result import Err
from common.settings import Settings
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.service_health import ServiceHealth
from modules.services.identity.identity import Me
from modules.services.inbox import messages
from modules.services.outbox import store
from modules.services.outbox.types import NON_BLUESKY_KINDS, Intent, IntentState
from modules.services.pinned_names import PinnedNames

SESSION_RETRY_DELAYS_MS = (10_000, 30_000, 60_000)

ACCOUNT_REMEDY = (
    "If you moved the account, set ATPROTO_SERVICE_URL to its new server and AGENT_BLUESKY_PASSWORD to an app password"
    " of that server. If you deactivated it, reactivate it in the Bluesky app. Then start again."
)
_MORE_TRIES = 240
_DID, _HANDLE = "account_did", "account_handle"
_OPEN: tuple[IntentState, ...] = ("held", "pending", "sending")


class AccountContext:
    """The age of the SOUL's account, and the accounts of the listed peers. `peers` and `born_at` are thread-safe.

    A handle in the owner's list stands for the account that had it at the first lookup, whoever has it later.
    """

    def __init__(self, *, me: Me, atproto: Atproto, journal: Journal, peers: Sequence[str], names: PinnedNames) -> None:
        self._me = me
        self._atproto = atproto
        self._journal = journal
        self._handles = tuple(peers)
        self._names = names
        self._born_at: datetime | None = None

    def peers(self) -> frozenset[str]:
        """Return the DIDs of the listed peers, and their handles while they still have them."""
        dids = {handle: did for handle in self._handles if (did := self._names.get("bluesky", handle))}
        theirs = (handle for handle in dids if not self._names.has_passed_on("bluesky", handle))
        return frozenset((*dids.values(), *theirs))

    def born_at(self) -> datetime | None:
        """Return when the account was created; None if that is not known."""
        return self._born_at

    async def learn_new_peers(self) -> None:
        """Look up the listed peers without a stored DID; until then each counts as a stranger. Only `learn` warns."""
        for handle in self._handles:
            if self._names.get("bluesky", handle) is not None:
                continue
            if did := (await self._atproto.resolve_handle(handle)).or_else(None):
                await self._names.check("bluesky", handle, did)

    async def learn(self) -> None:
        """Read the account's handle and age, the owner's handle and the peers' DIDs from the network.

        A failure is a warning; known values stay.
        """
        profile = await self._atproto.get_profile(self._atproto.did)
        if isinstance(profile, Err):
            await self._warn(f"The age of the account could not be read: {profile.error}")
        else:
            self._me.take_handle(profile.data.handle)
            self._born_at = parse_iso_or_none(profile.data.created_at) or self._born_at
        await self._learn_owner()
        for handle in self._handles:
            resolved = await self._atproto.resolve_handle(handle)
            if isinstance(resolved, Err):
                await self._warn(f"The peer @{handle} could not be found: {resolved.error}")
            else:
                await self._names.check("bluesky", handle, resolved.data)

    async def _learn_owner(self) -> None:
        """Take over the owner's present handle; the one in the settings may be somebody else's by now."""
        profile = await self._atproto.get_profile(self._me.owner_did)
        if isinstance(profile, Err):
            await self._warn(f"The owner's handle could not be read: {profile.error}")
            return
        before = self._me.owner_handle
        self._me.take_owner_handle(profile.data.handle)
        if (handle := self._me.owner_handle).lower() != before.lower():
            await self._warn(f"Your handle is @{handle} now: set OWNER_BLUESKY_SOCIAL_HANDLE, which is still @{before}")

    async def _warn(self, summary: str) -> None:
        await self._journal.record(Entry("life", "start", summary, line="warn"))


class AccountServices(Protocol):
    """The services that the account's client is built from; `stack` closes the client."""

    settings: Settings
    home: Home
    clock: Clock
    pace: Pace
    control: Control
    health: ServiceHealth
    stack: AsyncExitStack


def open_atproto(services: AccountServices, transport: Callable[[], httpx.AsyncBaseTransport]) -> Atproto:
    """Return the client of the SOUL's account, not logged in yet."""
    settings = services.settings
    atproto = Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=services.home.session,
        clock=services.clock,
        min_spacing_s=services.pace.atproto_spacing_ms / 1000,
        languages=settings.post_languages,
        write_block_reason=services.control.write_block_reason,
        on_response=partial(services.health.note, "Bluesky"),
        transport=transport,
    )
    services.stack.push_async_callback(atproto.aclose)
    return atproto


async def log_in(atproto: Atproto, journal: Journal, clock: Clock, *, username: str) -> Actor:
    """Log in, and return the account.

    Raises:
        Auth: the credentials of `username` are refused.
        Fatal: the service refuses permanently.
        Transient: it could not be reached for hours.

    """
    delays = iter((*SESSION_RETRY_DELAYS_MS, *SESSION_RETRY_DELAYS_MS[-1:] * _MORE_TRIES))
    notice = ""
    while True:
        result = await atproto.authenticate()
        if atproto.session_notice != notice:
            notice = atproto.session_notice
            await journal.record(Entry("error", "start", notice, line="error"))
        if not isinstance(result, Err):
            await journal.record(Entry("life", "start", f"On Bluesky as @{result.data.handle}", line="done"))
            return result.data
        if result.kind in {"auth", "invalid", "not_found"}:
            raise Auth(
                f"Bluesky refuses the login of {username}: {result.error}",
                remedy="Check AGENT_BLUESKY_USERNAME and AGENT_BLUESKY_PASSWORD (an app password) in .env.",
            )
        if result.kind == "fatal":
            raise Fatal(f"Bluesky: {result.error}", remedy=ACCOUNT_REMEDY)
        delay_ms = next(delays, None)
        if delay_ms is None:
            raise Transient(f"Bluesky could not be reached for hours: {result.error}")
        delay = max(delay_ms / 1000, result.retry_after or 0)
        summary = f"Bluesky cannot be reached ({result.error}); trying again in {delay:.0f} s"
        await journal.record(Entry("error", "start", summary, line="warn"))
        await clock.sleep(delay)


async def settle_account(database: Database, journal: Journal, clock: Clock, *, account: Actor, timezone: str) -> None:
    """Record after a login which account this home belongs to.

    Raises:
        ConfigError: it belongs to another account whose acts still wait to leave.

    """
    now = clock.now()
    former, waiting = await database.run(lambda connection: (known_account(connection), _waiting(connection, now)))
    if former is None or former.did == account.did:
        await database.run(lambda connection: _remember(connection, account))
        return
    if waiting:
        raise _not_ours(former, account, waiting, timezone)

    def take_over(connection: sqlite3.Connection) -> tuple[None, Entry]:
        _remember(connection, account)
        store.mark_all_undone(connection)
        messages.leave_account(connection)
        summary = f"This home now belongs to {_named(account)}"
        reason = f"it was {_named(former)}'s, and nothing of that account waits to leave"
        return None, Entry("life", "start", summary, line="warn", reason=reason)

    await journal.record_with(take_over)


def known_account(connection: sqlite3.Connection) -> Actor | None:
    """Return the account of the SOUL's last login, with its DID and handle; None if it never logged in."""
    known = marks.get_all(connection, (_DID, _HANDLE))
    return Actor(known[_DID], known.get(_HANDLE, "")) if _DID in known else None


def _remember(connection: sqlite3.Connection, account: Actor) -> None:
    marks.put(connection, {_DID: account.did, _HANDLE: account.handle})


def _waiting(connection: sqlite3.Connection, now: datetime) -> list[Intent]:
    """Return the intents for Bluesky that are not finished and have not expired."""
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
