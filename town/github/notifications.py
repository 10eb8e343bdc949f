"""Who is told of what happened to an issue or a pull request, and why. Pure, but for the box that keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from common.text.github_text import mentioned_logins
from town.github.values import GitHubAccount, StoredIssue, StoredPull, StoredRepo, StoredThread, ThreadReason

_WATCHING: ThreadReason = "subscribed"


def reasons(
    repo: StoredRepo,
    issue: StoredIssue,
    by: GitHubAccount,
    *,
    text: str = "",
    assigned: Iterable[GitHubAccount] = (),
    requested: Iterable[GitHubAccount] = (),
) -> dict[str, ThreadReason]:
    """Why each account is told that `by` did something to an issue, by its login in lower case.

    Of several reasons the nearest counts: being named, asked for a review, assigned, its author, one who wrote there.
    """
    pull: StoredPull | None = repo.pulls.get(issue.number)
    told: dict[str, ThreadReason] = {repo.owner.login.lower(): _WATCHING}
    reviewers = [review.author for review in pull.reviews if review.state != "PENDING"] if pull else []
    told |= dict.fromkeys((one.login.lower() for one in (*reviewers, *(c.author for c in issue.comments))), "comment")
    told |= dict.fromkeys((one.login.lower() for one in issue.assignees), "assign")
    told[issue.author.login.lower()] = "author"
    told |= dict.fromkeys((one.login.lower() for one in assigned), "assign")
    told |= dict.fromkeys((one.login.lower() for one in requested), "review_requested")
    told |= dict.fromkeys(mentioned_logins(text), "mention")
    told.pop(by.login.lower(), None)
    return told


class NotifiedThreads:
    """The threads of which accounts are told."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str, int, int], StoredThread] = {}
        self._changed: dict[str, datetime] = {}

    def tell(
        self,
        account: GitHubAccount,
        repo: StoredRepo,
        issue: StoredIssue,
        reason: ThreadReason,
        *,
        thread_id: int,
        at: datetime,
        comment_id: int | None,
    ) -> None:
        """The account hears of it: its thread is unread again, or a new one with the number `thread_id`."""
        key = (account.login, repo.id, issue.number)
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = StoredThread(thread_id, account, repo.id, issue, reason, at)
        thread.cause, thread.updated_at, thread.unread, thread.done = reason, at, True, False
        thread.comment_id = comment_id
        self._changed[account.login] = at

    def of(
        self,
        account: GitHubAccount,
        *,
        read: bool = False,
        participating: bool = False,
        since: datetime | None = None,
        before: datetime | None = None,
        repo_id: int | None = None,
    ) -> list[StoredThread]:
        """The account's threads, the newest first; with `read` also those that it has read."""
        found = [
            thread
            for thread in self._threads.values()
            if thread.account == account
            and not thread.done
            and (read or thread.unread)
            and not (participating and thread.cause == _WATCHING)
            and (since is None or thread.updated_at.replace(microsecond=0) >= since)
            and (before is None or thread.updated_at < before)
            and repo_id in {None, thread.repo_id}
        ]
        return sorted(found, key=lambda thread: (thread.updated_at, thread.id), reverse=True)

    def find(self, account: GitHubAccount, thread_id: int) -> StoredThread | None:
        """A thread of the account."""
        found = (one for one in self._threads.values() if one.id == thread_id and one.account == account)
        return next(found, None)

    def set_read(self, threads: Collection[StoredThread], *, at: datetime, done: bool = False) -> None:
        """The account has read them; with `done` it does not want to see them again."""
        for thread in threads:
            thread.unread, thread.last_read_at, thread.done = False, at, done
            self._changed[thread.account.login] = at

    def modified(self, account: GitHubAccount) -> datetime | None:
        """When the account's list last changed; None if there never was anything in it."""
        return self._changed.get(account.login)
