"""Reads the open plans of the workspaces that are watched. A workspace that cannot be read costs that one only."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.result import ApiResult, Err, Ok
from modules.lives.workspaces.types import FoundPlan
from modules.services.plans.parse import parse_plan
from modules.services.plans.tasks import PLAN_LABEL
from modules.services.workspaces.watched import WatchedWorkspaces

MOST_PLANS = 30


@dataclass(frozen=True, slots=True)
class Perceived:
    """The plans that are open, and what could not be read, a line each."""

    plans: tuple[FoundPlan, ...]
    unread: tuple[str, ...]


class PlanPerceiver:
    """Looks at the plans of the watched workspaces, at most `MOST_PLANS` of each."""

    def __init__(self, github: GitHub, workspaces: WatchedWorkspaces) -> None:
        self._github = github
        self._workspaces = workspaces

    async def look(self) -> Perceived:
        """Read them one after the other, and note in the file of workspaces when, and which plans are open.

        Raises:
            StorageError: the file cannot be written.

        """
        plans: list[FoundPlan] = []
        unread: list[str] = []
        with self._workspaces.one_save():
            for one in self._workspaces.all():
                if not self._github.enough_for_loops:
                    unread.append("the rest of the workspaces: too few requests to GitHub are left in this hour")
                    break
                repo = Repo(one.owner, one.repo)
                found = await self._plans_of(repo)
                if isinstance(found, Err):
                    unread.append(found.error)
                    continue
                plans += found.data
                self._workspaces.note_plans(repo, [plan.number for plan in found.data])
        return Perceived(tuple(plans), tuple(unread))

    async def _plans_of(self, repo: Repo) -> ApiResult[tuple[FoundPlan, ...]]:
        listed = await self._github.list_issues(repo, labels=(PLAN_LABEL,), limit=MOST_PLANS)
        if isinstance(listed, Err):
            return listed
        issues = [one for one in listed.data if not one.is_pull_request]
        found = ((one.number, parse_plan(one.body, one.title)) for one in issues)
        return Ok(tuple(FoundPlan(repo, number, plan) for number, plan in found if plan))
