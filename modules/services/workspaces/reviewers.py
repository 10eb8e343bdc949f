"""The reviewers of a pull request in a workspace: every SOUL computes the same ones, never its author. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from adapters.github.types import VERDICTS, Account, PullRequest, Review, latest_verdicts
from common.election import ranked
from modules.services.workspaces.trust import TrustedAccounts

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
