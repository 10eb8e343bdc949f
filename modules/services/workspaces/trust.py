"""Whose words count as work in a workspace: a plan is executed by SOULs that run commands, so not everybody's do.

Trusted are we, the owner, the peers that the owner listed, and who may push to the repository. Who that is GitHub tells
only those who may push themselves; where it cannot be read nobody is trusted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import Clock
from common.result import Err

READ_AGAIN_S = 900.0
"""How long the list of who may push counts, in seconds."""


@dataclass(frozen=True, slots=True)
class TrustedAccounts:
    """The accounts that are trusted in one workspace, and those of them that may push there; logins in lower case."""

    logins: frozenset[str]
    pushers: frozenset[str] = frozenset()

    def covers(self, *logins: str) -> bool:
        """Return whether one of these logins is trusted.

        A plan is executed where this holds for its author; an issue becomes part of a plan where it holds for its
        author or for one of those who commented.
        """
        return any(login.lower() in self.logins for login in logins)

    def lets_close(self, login: str, author: str) -> bool:
        """Return whether GitHub lets `login` close an issue of `author`: its own, or any where it may push."""
        return login.lower() == author.lower() or login.lower() in self.pushers


def trusted_accounts(me: str, owner: str, peers: Collection[str], pushers: Collection[str]) -> TrustedAccounts:
    """Return who is trusted; a login that is "" or of an account that is gone is nobody's."""
    named = (me, owner, *peers, *pushers)
    logins = frozenset(login.lower() for login in named if login) - {"ghost"}
    return TrustedAccounts(logins, frozenset(login.lower() for login in pushers) & logins)


class WorkspaceTrust:
    """Knows who is trusted in each workspace. `peers` returns the logins of the peers that the owner listed."""

    def __init__(self, github: GitHub, owner: str, peers: Callable[[], Collection[str]], clock: Clock) -> None:
        self._github = github
        self._owner = owner
        self._peers = peers
        self._clock = clock
        self._pushers: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def accounts(self, repo: Repo) -> TrustedAccounts:
        """Return who is trusted in a workspace; costs a request where that was not asked for a quarter of an hour."""
        pushers = await self._who_may_push(repo)
        return trusted_accounts(self._github.login, self._owner, self._peers(), pushers)

    async def _who_may_push(self, repo: Repo) -> tuple[str, ...]:
        key, now = repo.full_name.lower(), self._clock.monotonic()
        read_at, known = self._pushers.get(key, (now - READ_AGAIN_S, ()))
        if now - read_at < READ_AGAIN_S:
            return known
        found = await self._github.repositories.pushers(repo)
        if isinstance(found, Err):
            return ()
        self._pushers[key] = (now, found.data)
        return found.data
