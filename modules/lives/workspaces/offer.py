"""Offers one task at a time to the life on tasks, keeps how tasks stand, and tells the owner which it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from adapters.github.client import GitHub
from common.clock import iso
from modules.lives.workspaces.policy import plans_to_claim_in, tasks_to_claim
from modules.lives.workspaces.types import CycleStep, Place, Poll, StepResult
from modules.runtime.events import Publish
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.claims.offers import TASK, TaskOffered, TaskPlace, TaskStanding, place_of, standing_of
from modules.services.plans.parse import parse_plan
from modules.services.plans.types import FoundPlan, Plan, PlanKey, Task
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

_MOST_ROWS = 100
CanDo = Callable[[Task], bool]
"""Returns whether some work of this SOUL can do a task."""


@dataclass(frozen=True, slots=True)
class OfferStep(CycleStep):
    """Fills the row of the task that is to be done next, unless one is due or in work."""

    can_do: CanDo
    table: WorkTable
    trust: WorkspaceTrust
    publish: Publish
    name = "offer"
    place = Place.CLAIM
    acts = False

    async def run(self, poll: Poll) -> StepResult:
        """Offer the first task that may be claimed and waits for nothing."""
        if await self.table.due((TASK,)):
            return StepResult()
        for found in plans_to_claim_in(poll.plans):
            if await self._offer_of(found):
                self.publish(TaskOffered())
                break
        return StepResult()

    async def _offer_of(self, found: FoundPlan) -> bool:
        """Offer a task of a plan by one whose words count; return whether there was one."""
        tasks = [task for task in tasks_to_claim(found.plan) if self.can_do(task)]
        if not tasks or not (await self.trust.accounts(found.repo)).covers(found.issue.account):
            return False
        for task in tasks:
            if await self.table.offer(TaskPlace(found.repo, found.number, task.number, task.title).row):
                return True
        return False


@dataclass(frozen=True, slots=True)
class TaskStandings(CycleStep):
    """Keeps in the row of each task how it stands on its plan, for the owner; one that is closed is read once."""

    github: GitHub
    table: WorkTable
    name = "task-standings"
    place = Place.STUCK_TASKS
    acts = False
    sees_finished = True

    async def run(self, poll: Poll) -> StepResult:
        """Note what changed."""
        plans = {plan.key: plan.plan for plan in poll.plans}
        repos = {one.repo for one in poll.workspaces}
        closed: dict[PlanKey, Plan | None] = {}
        for row in await self.table.newest(TASK, _MOST_ROWS):
            place = place_of(row)
            key = (place.repo.full_name.lower(), place.issue)
            plan = plans.get(key)
            if plan is None and place.repo in repos and standing_of(row).is_open:
                if key not in closed:
                    closed[key] = await self._read(place)
                plan = closed[key]
            task = plan.task(place.number) if plan else None
            if task is not None:
                await self._note(row, TaskStanding(task.status, task.assignee or "", key in plans), poll)
        return StepResult()

    async def _read(self, place: TaskPlace) -> Plan | None:
        """Return a plan that is closed, None where it cannot be read now."""
        read = (await self.github.get_issue(place.repo, place.issue)).or_else(None)
        return parse_plan(read.body, read.title) if read else None

    async def _note(self, row: WorkItem, standing: TaskStanding, poll: Poll) -> None:
        if standing != standing_of(row):
            await self.table.note(row, standing=asdict(replace(standing, since=iso(poll.at))))


@dataclass(frozen=True, slots=True)
class UndoableTasks(CycleStep):
    """Tells the owner once of each plan with tasks that nobody has and none of our work can do, such as code.

    The watch list says of which plans that was told.
    """

    can_do: CanDo
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    journal: Journal
    name = "undoable-tasks"
    place = Place.CLAIM
    acts = False

    async def run(self, poll: Poll) -> StepResult:
        """Tell of each plan whose author's words count."""
        for found in poll.plans:
            watched, tasks = self.workspaces.get(found.repo), self._undoable(found)
            if watched is None or not tasks or found.number in watched.undoable_told:
                continue
            if not (await self.trust.accounts(found.repo)).covers(found.issue.account):
                continue
            await self._tell(found, tasks)
            self.workspaces.note(found.repo, undoable_told=(*watched.undoable_told, found.number))
        return StepResult()

    def _undoable(self, found: FoundPlan) -> list[Task]:
        left = (task for task in found.plan.tasks if task.assignee is None and task.status != "completed")
        return [task for task in left if not task.unclear and not self.can_do(task)]

    async def _tell(self, found: FoundPlan, tasks: Sequence[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        summary = (
            f"{names} of {found.repo.full_name}#{found.number}: no work of this SOUL can do that, somebody else has to"
        )
        reason = "; ".join(task.title for task in tasks)
        uri = found.issue.html_url
        await self.journal.record(Entry("decision", self.name, summary, line="warn", reason=reason, trigger_uri=uri))
