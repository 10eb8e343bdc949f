"""Decides which of several SOULs does work in a workspace that all could do, such as closing a duplicate plan.

All compute the same: for each piece of work the lowest hash of a login and the name of the work decides. The others do
it later if it is still to be done, so that nothing waits for a SOUL that is gone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from adapters.github.client import GitHub
from adapters.github.types import Account, Repo
from common.clock import Clock
from common.election import elect
from common.result import Ok
from modules.runtime.record_file import FileRecord, Moment, RecordFile

SEEN_WITHIN = timedelta(hours=24)
"""Peers count if they were seen within this time."""
OTHERS_AFTER = timedelta(minutes=10)
"""The time for which the others leave a piece of work to the SOUL that is responsible for it."""
_FORGOTTEN_AFTER = 18
GONE_AFTER = timedelta(days=7)
"""After this time without any act, another SOUL may take over the work of a SOUL."""
_GONE_LOOK_S = 3_600.0
FOUND_WORK = "found_work.json"


def is_acting_soul(login: str, peers: Iterable[str], key: str) -> bool:
    """Return whether the piece of work `key` is ours, among us and the logins of peers; never without a login."""
    own = login.lower()
    return bool(login) and elect({own, *(peer.lower() for peer in peers if peer)}, key) == own


class FoundWork(FileRecord):
    """Since when a piece of work is found, and when it was found last, within `OTHERS_AFTER`."""

    since: Moment
    last: Moment


class ActingTurns:
    """Says when we may do a piece of work; what is found is stored, as a SOUL that sleeps looks once an hour.

    Args:
        login: our account on GitHub.
        peers: returns the logins of the peers that were seen since a given time.
        clock: the time.
        path: the file.

    """

    def __init__(self, login: str, peers: Callable[[datetime], Iterable[str]], clock: Clock, path: Path) -> None:
        self._login = login
        self._peers = peers
        self._clock = clock
        self._others_after = timedelta(seconds=clock.real(OTHERS_AFTER.total_seconds()))
        self._file = RecordFile(path, "found", FoundWork)
        self.notice = self._file.notice

    def ask_for_turn(self, key: str, of: str = "") -> bool:
        """Record that the piece of work `key` is still to be done; return whether we do it now.

        It belongs to the login `of` if that was seen recently, otherwise to the SOUL with the lowest hash. Call this at
        each look that finds the work; after three hours without a call the wait begins again. Raises `StorageError`.
        """
        now, found = self._clock.now(), self._file.records.get(key)
        if found is None or now - found.last >= self._others_after:
            forgotten = now - _FORGOTTEN_AFTER * self._others_after
            kept = {one: known for one, known in self._file.records.items() if known.last > forgotten}
            found = FoundWork(since=kept[key].since if key in kept else now, last=now)
            self._file.records = {**kept, key: found}
            self._file.save()
        peers = {one.lower() for one in self._peers(now - SEEN_WITHIN)}
        known = {of.lower()} & {self._login.lower(), *peers} - {""}
        if self._login.lower() in known or (not known and is_acting_soul(self._login, peers, key)):
            return True
        return now - found.since >= self._others_after


@dataclass(slots=True)
class GoneAccounts:
    """Says whether an account did nothing for `GONE_AFTER`, from public data; looks once an hour.

    Attributes:
        github: shows what it did in public, and in a repository.
        seen_since: returns whether the SOUL of a login was seen on Bluesky since a time; True while unreadable.
        clock: the time.

    """

    github: GitHub
    seen_since: Callable[[str, datetime], Awaitable[bool]]
    clock: Clock
    _looked: dict[tuple[Account, Repo], tuple[float, bool]] = field(default_factory=dict, init=False)

    async def is_gone(self, account: Account, repo: Repo) -> bool:
        """Return whether it is gone; False while that cannot be read."""
        now_s, before = self.clock.monotonic(), self._looked.get((account, repo))
        if before and now_s - before[0] < _GONE_LOOK_S:
            return before[1]
        since = self.clock.now() - GONE_AFTER
        acted = await self.github.acted_since(account, repo, since)
        is_gone = acted == Ok(data=False) and not await self.seen_since(account.login, since)
        self._looked[account, repo] = (now_s, is_gone)
        return is_gone
