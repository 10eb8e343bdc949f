"""Logs in to Bluesky at the start of a life, and waits out what is only briefly down."""

from __future__ import annotations

from adapters.atproto.client import Atproto
from adapters.atproto.types import Actor
from common.clock import Clock
from common.constants import SESSION_RETRY_DELAYS_MS
from common.errors import Auth, Fatal, Transient
from common.result import Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry

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
