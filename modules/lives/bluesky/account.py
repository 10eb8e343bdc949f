"""Our account: logging in, and what the rules must know of it and of the listed peers.

Lives in memory; each start asks anew. Until it is told, the account counts as young, and a peer is known by handle.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor
from common.clock import Clock, parse_iso_or_none
from common.errors import Auth, Fatal, Transient
from common.result import Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

SESSION_RETRY_DELAYS_MS = (10_000, 30_000, 60_000)


class AccountContext:
    """When our account was made, and who the listed peers are. Its answers may be asked for from any thread."""

    def __init__(self, *, atproto: Atproto, journal: Journal, peers: Sequence[str]) -> None:
        self._atproto = atproto
        self._journal = journal
        self._handles = tuple(peers)
        self._peers = frozenset(peers)
        self._born_at: datetime | None = None

    def peers(self) -> frozenset[str]:
        """Dids and handles of the listed peers."""
        return self._peers

    def born_at(self) -> datetime | None:
        """When our account was made; None if nobody knows."""
        return self._born_at

    async def learn(self) -> None:
        """Ask the network. What cannot be learnt now is told as a warning, and what was known stays."""
        profile = await self._atproto.get_profile(self._atproto.did)
        if isinstance(profile, Err):
            await self._warn(f"The age of the account could not be read: {profile.error}")
        elif profile.data.created_at:
            self._born_at = parse_iso_or_none(profile.data.created_at)
        dids: set[str] = set()
        for handle in self._handles:
            resolved = await self._atproto.resolve_handle(handle)
            if isinstance(resolved, Err):
                await self._warn(f"The peer @{handle} could not be found: {resolved.error}")
            else:
                dids.add(resolved.data)
        self._peers |= dids

    async def _warn(self, summary: str) -> None:
        await self._journal.record(Entry("life", "start", summary, line="warn"))


_MORE_TRIES = 240


async def log_in(atproto: Atproto, journal: Journal, clock: Clock, *, username: str) -> Actor:
    """Return the account that we are logged in as.

    Raises:
        Auth: the credentials of `username` are refused.
        Fatal: the service refuses for good.
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
            raise Fatal(f"Bluesky: {result.error}", remedy="Log in with the Bluesky app and see what it says.")
        delay_ms = next(delays, None)
        if delay_ms is None:
            raise Transient(f"Bluesky could not be reached for hours: {result.error}")
        delay = max(delay_ms / 1000, result.retry_after or 0)
        summary = f"Bluesky cannot be reached ({result.error}); trying again in {delay:.0f} s"
        await journal.record(Entry("error", "start", summary, line="warn"))
        await clock.sleep(delay)
