"""The pull requests of a plan: which of them are for it, and whose count."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.result import ApiResult, Ok, answering
from modules.services.workspaces.trust import MOST_PEOPLE, TrustedAccounts, by_login

MOST_PULLS = 100
"""So many of the newest pull requests are read in one request; of more, those of each account that counts."""
_MOST_WRITTEN = 1_000

_PART_OF = re.compile(r"\bpart of #([0-9]{1,9})(?![0-9])", re.IGNORECASE)


def plan_of(text: str) -> int | None:
    """Return the issue that the text of a pull request says it is part of, None where it says none."""
    part = _PART_OF.search(text)
    return int(part[1]) if part else None


def pulls_for(plan: int, pulls: Iterable[PullRequest], trusted: TrustedAccounts) -> list[PullRequest]:
    """Return those that name the plan, by accounts that count and from branches of the repository itself.

    Anybody can write any number into theirs, and name the branch of a fork as they like.
    """
    return [one for one in pulls if plan_of(one.body) == plan and trusted.covers(one.account) and not one.is_from_fork]


@answering
async def read_pulls(
    github: GitHub, repo: Repo, plan: int, trusted: TrustedAccounts
) -> ApiResult[tuple[PullRequest, ...]]:
    """Return the pull requests in any state that are newer than a plan, and may be for it.

    Where there are more than one request tells, they are found by who made them: no number of others hides one.
    """
    newest = (await github.pulls.list(repo, state="all", limit=MOST_PULLS)).or_raise()
    if len(newest) < MOST_PULLS or newest[-1].number <= plan:
        return Ok(newest)
    found = {one.number: one for one in newest}
    for person in [trusted.us, *trusted.others()][:MOST_PEOPLE]:
        written = await github.list_issues(repo, state="all", creator=person.login, limit=_MOST_WRITTEN)
        for one in by_login(written):
            if one.is_pull_request and one.number not in found and plan_of(one.body) == plan:
                found[one.number] = (await github.pulls.get(repo, one.number)).or_raise()
    return Ok(tuple(found[number] for number in sorted(found, reverse=True)))
