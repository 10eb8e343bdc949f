"""Gaps found in a workspace: the issues for them, and the results of checking its scenarios."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Comment, Repo
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.outbox.types import ActStanding
from modules.services.work.types import NewWork
from modules.services.workspaces.sentinel import is_marked_finished
from modules.services.workspaces.trust import WorkspaceTrust

SCENARIOS = "scenarios"
"""The kind of the rows for checking SCENARIOS.md: one for each completed plan."""
MOST_ROUNDS = 2
"""The number of times that gaps become work before a workspace is finished; it restarts if work goes on later."""

_GAPS = "<!-- soul:gaps -->"
_FAILING = re.compile(r"<!-- soul:scenarios-failing=(\d{1,4}) -->")
_MOST_LOOKED_AT = 100


def failing_mark(count: int) -> str:
    """Return the hidden mark that ends a comment about failing scenarios."""
    return f"<!-- soul:scenarios-failing={count} -->"


def failing_in(comments: Iterable[Comment]) -> int | None:
    """Return how many scenarios fail after a plan; None if not told yet. `comments` are of trusted accounts."""
    told = [found for one in comments for found in _FAILING.findall(one.body)]
    return int(told[-1]) if told else None


def scenarios_row(repo: Repo, plan: int) -> NewWork:
    """Return the row for the plan in an issue, as its task 0, which no plan has."""
    payload = {"owner": repo.owner, "repo": repo.name, "issue": plan, "number": 0}
    return NewWork(SCENARIOS, f"{repo.full_name}#{plan}", payload, importance="commitment")


@dataclass(frozen=True, slots=True)
class WorkspaceGaps:
    """Opens issues for gaps."""

    github: GitHub
    writer: GitHubWriter
    trust: WorkspaceTrust

    async def has_round_left(self, repo: Repo) -> bool | None:
        """Return whether another issue may be opened since the workspace was last finished; None if unknown."""
        if (listed := (await self.github.list_issues(repo, state="all", limit=_MOST_LOOKED_AT)).or_else(None)) is None:
            return None
        sentinel = max((one.number for one in listed if is_marked_finished(one)), default=0)
        accounts = await self.trust.accounts(repo)
        told = [one for one in listed if _GAPS in one.body and accounts.covers(one.account)]
        return sum(one.number > sentinel for one in told) < MOST_ROUNDS

    async def opened(self, repo: Repo, occasion: str) -> int | None:
        """Return the number of the issue that a SOUL opened for an occasion, or None. Raises `SoulError`."""
        listed = (await self.github.list_issues(repo, state="all", limit=_MOST_LOOKED_AT)).or_raise()
        accounts = await self.trust.accounts(repo)
        found = (one.number for one in listed if _occasion_mark(occasion) in one.body and accounts.covers(one.account))
        return next(found, None)

    async def open(self, repo: Repo, occasion: str, title: str, body: str) -> ActStanding:
        """Open an issue, once for each occasion."""
        text = f"{body.strip()}\n\n{_occasion_mark(occasion)}\n{_GAPS}"
        return await self.writer.open_issue(repo, f"{gap_key(repo)}{occasion}", title, text)


def _occasion_mark(occasion: str) -> str:
    return f"<!-- soul:gap={occasion} -->"


def gap_key(repo: Repo) -> str:
    """Return the prefix of the keys of all these issues."""
    return f"health:{repo.full_name.lower()}#"
