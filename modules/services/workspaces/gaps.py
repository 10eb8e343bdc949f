"""Opens issues for what is missing in a workspace: `MOST_ROUNDS` at most, until it goes on after it was finished."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo
from modules.services.outbox.github_writer import GitHubWriter
from modules.services.outbox.types import ActStanding
from modules.services.workspaces.trust import WorkspaceTrust

MOST_ROUNDS = 2
"""So often what is missing becomes work before a workspace is finished; when it goes on later this counts anew."""

_MARK = "<!-- soul:gaps -->"
_MOST_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class WorkspaceGaps:
    """Opens them."""

    github: GitHub
    writer: GitHubWriter
    trust: WorkspaceTrust

    async def has_round_left(self, repo: Repo, sentinel: int) -> bool | None:
        """Return whether another issue may be opened after the sentinel of that number; None where it is not known."""
        if (listed := (await self.github.list_issues(repo, state="all", limit=_MOST_LOOKED_AT)).or_else(None)) is None:
            return None
        accounts = await self.trust.accounts(repo)
        told = [one for one in listed if _MARK in one.body and accounts.covers(one.account)]
        return sum(one.number > sentinel for one in told) < MOST_ROUNDS

    async def open(self, repo: Repo, occasion: str, title: str, body: str) -> ActStanding:
        """Open the issue, once for its occasion."""
        return await self.writer.open_issue(repo, f"{gap_key(repo)}{occasion}", title, f"{body.strip()}\n\n{_MARK}")


def gap_key(repo: Repo) -> str:
    """Return what the keys of all these issues begin with."""
    return f"health:{repo.full_name.lower()}#"
