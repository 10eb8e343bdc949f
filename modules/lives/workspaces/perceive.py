"""Reads the open issues and plans of the watched workspaces. One that cannot be read does not affect the others."""

from adapters.github.client import GitHub
from adapters.github.sending import has_moved
from adapters.github.types import Issue, Repo
from common.clock import Clock
from common.result import ApiResult, Err, Ok, answering
from modules.lives.workspaces.types import Poll, PolledWorkspace
from modules.lives.workspaces.wanted import WORK_LABEL
from modules.services.claims.lease_store import TaskOrders
from modules.services.plans.plan_text import TITLE_MARK, parse_plan
from modules.services.plans.types import MOST_PLANS, PLAN_LABEL, FoundPlan
from modules.services.workspaces.trust import MOST_PEOPLE, WorkspaceTrust, by_login
from modules.services.workspaces.watched import WatchedWorkspaces

MOST_ISSUES = 100


class WorkspacePerceiver:
    """Reads the open issues of the watched workspaces: the newest `MOST_ISSUES` of each.

    One request is enough for a workspace, unless it has more issues. Then its plans and the issues by each account that
    counts are requested as well, so that no number of other issues hides them.
    """

    def __init__(
        self,
        github: GitHub,
        workspaces: WatchedWorkspaces,
        trust: WorkspaceTrust,
        orders: TaskOrders,
        clock: Clock,
    ) -> None:
        self._github = github
        self._trust = trust
        self._orders = orders
        self._workspaces = workspaces
        self._clock = clock

    async def look(self) -> Poll:
        """Read the workspaces one after the other, and store in their file when, and which plans are open.

        Raises:
            StorageError: the file cannot be written.

        """
        at = self._clock.now()
        read: list[PolledWorkspace] = []
        unread: list[str] = []
        with self._workspaces.one_save():
            for one in self._workspaces.all():
                if not self._github.enough_for_loops:
                    unread.append("the rest of the workspaces: too few requests to GitHub are left in this hour")
                    break
                repo = Repo(one.owner, one.repo)
                found = await self._issues_of(repo)
                if isinstance(found, Err) and has_moved(found) and (new := await self._trust.renamed(repo)):
                    await self._orders.follow(repo, new)
                    self._workspaces.rename(repo, new)
                    unread.append(f"{repo.full_name} is {new.full_name} now, and read from the next look on")
                    continue
                if isinstance(found, Err):
                    gone = found.kind == "not_found" and self._workspaces.unwatch_gone(repo)
                    unread.append(f"{found.error}{'; it is watched no longer' if gone else ''}")
                    continue
                issues = await self._asked_for(repo, found.data) if one.requested else found.data
                plans = () if one.finished_issue_number is not None else await self._plans_in(repo, issues)
                read.append(PolledWorkspace(one, issues, plans))
                if one.finished_issue_number is None:
                    self._workspaces.note_plans(repo, [plan.number for plan in plans])
        return Poll(at, tuple(read), tuple(unread))

    async def _asked_for(self, repo: Repo, issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
        """Return what a requested repository is watched for: plans, pull requests, our issues, and labelled work.

        Its other issues are not ours to plan, answer or close.
        """
        trusted = await self._trust.accounts(repo)

        def is_asked_for(one: Issue) -> bool:
            is_plan = _is_labelled(one) or one.title.startswith(TITLE_MARK)
            return (
                one.is_pull_request or is_plan or one.account == trusted.us or WORK_LABEL in map(str.lower, one.labels)
            )

        return tuple(filter(is_asked_for, issues))

    async def _plans_in(self, repo: Repo, issues: tuple[Issue, ...]) -> tuple[FoundPlan, ...]:
        """Return the plans among the issues: those with the label, and those titled as one by somebody who counts."""
        titled = [one for one in issues if not _is_labelled(one) and one.title.startswith(TITLE_MARK)]
        trusted = await self._trust.accounts(repo) if titled else None
        meant = {one.number for one in titled if trusted and trusted.covers(one.account)}
        chosen = [one for one in issues if not one.is_pull_request and (_is_labelled(one) or one.number in meant)]
        found = ((one, parse_plan(one.body, one.title)) for one in chosen[:MOST_PLANS])
        return tuple(FoundPlan(repo, issue, plan) for issue, plan in found if plan)

    @answering
    async def _issues_of(self, repo: Repo) -> ApiResult[tuple[Issue, ...]]:
        listed = (await self._github.list_issues(repo, limit=MOST_ISSUES)).or_raise()
        accounts = await self._trust.whole(repo)  # NOTE(self): of whom it is not known, no plan or mark would be seen
        if len(listed) < MOST_ISSUES:
            return Ok(listed)
        found = {one.number: one for one in listed}
        plans = (await self._github.list_issues(repo, labels=(PLAN_LABEL,), limit=MOST_PLANS)).or_raise()
        found |= {one.number: one for one in plans}
        for person in [accounts.us, *accounts.others()][:MOST_PEOPLE]:
            written = by_login(await self._github.list_issues(repo, creator=person.login, limit=MOST_ISSUES))
            found |= {one.number: one for one in written}
        return Ok(tuple(found[number] for number in sorted(found, reverse=True)))


def _is_labelled(issue: Issue) -> bool:
    return PLAN_LABEL in (label.lower() for label in issue.labels)
