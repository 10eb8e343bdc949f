"""Who is asked to review a pull request: the same for every SOUL that works it out, and never its author. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from common.election import ranked

REVIEWERS = 2
"""How many are asked."""


def pick_reviewers(pr_key: str, author: str, candidates: Iterable[str], k: int = REVIEWERS) -> list[str]:
    """Return the `k` candidates with the lowest hashes, as they are written, without the author; each login once.

    Args:
        pr_key: the pull request, `owner/repo#31`.
        author: its author's login.
        candidates: logins in any case.
        k: the most to return.

    """
    logins = {login.lower(): login for login in candidates if login}
    logins.pop(author.lower(), None)
    return [logins[login] for login in ranked(logins, pr_key)[:k]]
