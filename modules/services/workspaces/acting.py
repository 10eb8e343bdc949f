"""Which of several SOULs does what all could do in a workspace, and who reviews: all compute the same.

For each piece of work the lowest hash of a login and the name of the work decides. The others do
it later if it is still to be done, so that nothing waits for a SOUL that is gone.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.types import VERDICTS, Account, PullRequest, Repo, Review, latest_verdicts
from common.clock import Clock
from common.election import elect, ranked
from common.result import Ok
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.workspaces.trust import TrustedAccounts

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
        login: returns our login on GitHub.
        peers: returns the logins of the peers that were seen since a given time.
        clock: the time.
        path: the file.

    """

    def __init__(
        self, login: Callable[[], str], peers: Callable[[datetime], Iterable[str]], clock: Clock, path: Path
    ) -> None:
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
        login = self._login().lower()
        known = {of.lower()} & {login, *peers} - {""}
        if login in known or (not known and is_acting_soul(login, peers, key)):
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


REVIEWERS = 2
"""The number of reviewers that are asked."""

ReviewCause = Literal[
    "requested",  # our review is requested by name
    "again",  # we reviewed an earlier commit of it
    "designated",  # it is another SOUL's, and the rule names us as one of the two
]
"""The reasons why we give a review."""


def pick_reviewers(pr_key: str, author: str, candidates: Iterable[str], k: int = REVIEWERS) -> list[str]:
    """Return the `k` candidates with the lowest hashes, as written, without the author; each login once.

    Args:
        pr_key: the pull request, `owner/repo#31`.
        author: its author's login.
        candidates: logins in any case.
        k: the most to return.

    """
    logins = {login.lower(): login for login in candidates if login}
    logins.pop(author.lower(), None)
    return [logins[login] for login in ranked(logins, pr_key)[:k]]


def is_reviewed_by_test(pull: PullRequest, trusted: TrustedAccounts) -> bool:
    """Return whether a pull request of a workspace is tested for its review and gets a verdict.

    It is open, ready, not ours, by a trusted account, and from a branch of the repository itself.
    """
    is_ready = pull.state == "open" and not pull.draft and not pull.is_from_fork
    return is_ready and trusted.covers_besides_us(pull.account)


def requested_changes(sha: str, reviews: Iterable[Review], trusted: TrustedAccounts) -> list[Review]:
    """Return the reviews that request changes of the commit `sha`: the last verdict of each trusted account."""
    last = latest_verdicts(reviews).values()
    asking = (one for one in last if one.state == "CHANGES_REQUESTED" and one.commit_id == sha)
    return [one for one in asking if trusted.covers_besides_us(Account(one.author_id, one.author))]


def reviews_to_answer(sha: str, reviews: Sequence[Review], trusted: TrustedAccounts) -> list[Review]:
    """Return the reviews of the commit `sha` that its author answers.

    Those that request changes; without a verdict of a trusted account, the last comment of each trusted account.
    """
    if asking := requested_changes(sha, reviews, trusted):
        return asking
    here = [one for one in reviews if one.commit_id == sha]
    counting = [one for one in here if trusted.covers_besides_us(Account(one.author_id, one.author))]
    if any(one.state in VERDICTS for one in counting):
        return []
    return list({one.author_id: one for one in counting if one.state == "COMMENTED"}.values())


def review_cause(
    pr_key: str, pull: PullRequest, reviews: Sequence[Review], trusted: TrustedAccounts, peers: Collection[str]
) -> ReviewCause | None:
    """Return why we give the review of the current commit, or None if we do not.

    A person's pull request is left alone unless our review of it is, or was, requested. If two other trusted accounts
    gave a verdict on a SOUL's pull request, or are requested, the rule names nobody else.

    Args:
        pr_key: the pull request, `owner/repo#31`.
        pull: one for which `is_reviewed_by_test` holds.
        reviews: all of its reviews.
        trusted: the accounts that count there.
        peers: the logins of the known SOULs.

    """
    us = trusted.us
    given = [one for one in reviews if one.state != "PENDING"]
    own = [one for one in given if one.author_id == us.id]
    if any(one.commit_id == pull.head.sha for one in own):
        return None
    if us in pull.requested_reviewers:
        return "requested"
    if own:
        return "again"
    judged = (one for one in given if one.commit_id == pull.head.sha and one.state in VERDICTS)
    others = {Account(one.author_id, one.author) for one in judged}.union(pull.requested_reviewers) - {pull.account}
    others = {one for one in others if trusted.covers(one)}
    if not trusted.is_program(pull.account) or len(others) >= REVIEWERS:
        return None
    return "designated" if us.login in pick_reviewers(pr_key, pull.author, {us.login, *peers}) else None
