"""The pull requests of a plan: which of them are for it, and whose count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from adapters.github.client import GitHub
from adapters.github.types import PullRequest, Repo
from common.result import ApiResult
from modules.services.workspaces.trust import TrustedAccounts

MOST_PULLS = 1_000
"""So many pull requests are looked through for those of a plan; each hundred costs a request."""

_PART_OF = re.compile(r"\bpart of #([0-9]{1,9})(?![0-9])", re.IGNORECASE)


def plan_of(pull: PullRequest) -> int | None:
    """Return the issue that a pull request says it is part of, None where it says none."""
    part = _PART_OF.search(pull.body)
    return int(part[1]) if part else None


def pulls_for(plan: int, pulls: Iterable[PullRequest], trusted: TrustedAccounts) -> list[PullRequest]:
    """Return those that name the plan, by accounts that are trusted: anybody can write any number into theirs."""
    return [one for one in pulls if plan_of(one) == plan and trusted.covers(one.author)]


async def read_pulls(github: GitHub, repo: Repo, plan: int) -> ApiResult[tuple[PullRequest, ...]]:
    """Return the pull requests of a repository in any state, the newest first, down to those older than the plan."""
    return await github.pulls.list(repo, state="all", limit=MOST_PULLS, down_to=plan)


def are_all_read(pulls: Sequence[PullRequest], plan: int) -> bool:
    """Return whether none that is newer than the plan is missing from what `read_pulls` returned."""
    return len(pulls) < MOST_PULLS or pulls[-1].number <= plan
