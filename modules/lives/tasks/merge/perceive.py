"""Gives each open pull request of ours for a task a row that waits until it is merged or closed."""

from collections.abc import Mapping
from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Issue, Repo
from common.errors import Transient
from common.result import Err
from modules.services.work.table import WorkTable
from modules.services.work.types import NewWork, Perceiver, WorkItem
from modules.services.workspaces.trust import WorkspaceTrust, plan_of
from modules.services.workspaces.watched import WatchedWorkspaces, is_workspace_name

MERGE = "merge"
"""The kind of the rows."""
_MOST_PULLS = 100
_CHANGED_AT = "changed_at"
"""In a row, the version of its pull request as listed; "" if it is not listed as open."""


@dataclass(frozen=True, slots=True)
class OwnPulls(Perceiver):
    """Finds our open pull requests in the workspaces, with one request each that returns nobody else's issues."""

    github: GitHub
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    table: WorkTable

    async def perceive(self) -> None:
        """Offer the rows. Raises `Transient` for workspaces that could not be read, after all others were."""
        unread: list[str] = []
        for one in self.workspaces.all():
            repo = Repo(one.owner, one.repo)
            if not is_workspace_name(repo.name) or not self.github.enough_for_loops:
                continue
            us = (await self.trust.accounts(repo)).us
            listed = await self.github.list_issues(repo, creator=us.login, limit=_MOST_PULLS)
            if isinstance(listed, Err):
                unread.append(listed.error)
                continue
            ours = [one for one in listed.data if one.is_pull_request and one.account == us]
            rows = [row_of(repo, one) for one in ours if plan_of(one.body) is not None]
            for row in rows:
                await self.table.offer(row)
            await self._bring_forward(repo, {row.key: row.payload[_CHANGED_AT] for row in rows})
        if unread:
            raise Transient(f"Pull requests could not be read: {'; '.join(unread)}")

    async def _bring_forward(self, repo: Repo, changed_at: Mapping[str, str]) -> None:
        """Let each waiting row be handled now whose pull request changed since the last look, or is no longer open."""
        for row in await self.table.newest(MERGE, _MOST_PULLS, key_prefix=f"{repo.full_name}#"):
            listed = changed_at.get(row.key, "")
            if row.state == "pending" and row.payload.get(_CHANGED_AT) != listed:
                await self.table.retry(row, {**row.payload, _CHANGED_AT: listed})


def row_of(repo: Repo, issue: Issue) -> NewWork:
    """Return the row of a pull request: `owner/repo#12`."""
    payload = {"owner": repo.owner, "repo": repo.name, "number": issue.number, _CHANGED_AT: issue.version}
    return NewWork(MERGE, f"{repo.full_name}#{issue.number}", payload, importance="commitment")


def pull_of(item: WorkItem) -> tuple[Repo, int]:
    """Return the pull request of a row. Raises `KeyError` for a row of another kind."""
    told = item.payload
    return Repo(told["owner"], told["repo"]), told["number"]
