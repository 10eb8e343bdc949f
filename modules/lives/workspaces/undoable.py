"""Tells the owner once of each plan that has tasks which this SOUL cannot do, such as those that ask for code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modules.lives.workspaces.types import FoundPlan, Place, Poll, StepResult, TaskWork
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.plans.types import Task
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces


@dataclass(frozen=True, slots=True)
class UndoableTasks:
    """Looks for tasks that nobody has and none of `works` can do; the watch list says of which plans that was told."""

    works: Sequence[TaskWork]
    workspaces: WatchedWorkspaces
    trust: WorkspaceTrust
    journal: Journal
    name: str = "undoable-tasks"
    place: Place = Place.CLAIM
    acts: bool = False
    sees_finished: bool = False

    async def run(self, poll: Poll) -> StepResult:
        """Tell of each plan whose author's words count."""
        for found in poll.plans:
            watched, tasks = self.workspaces.get(found.repo), self._undoable(found)
            if watched is None or not tasks or found.number in watched.undoable_told:
                continue
            if not (await self.trust.accounts(found.repo)).covers(found.issue.author):
                continue
            await self._tell(found, tasks)
            self.workspaces.note(found.repo, undoable_told=(*watched.undoable_told, found.number))
        return StepResult()

    def _undoable(self, found: FoundPlan) -> list[Task]:
        left = (task for task in found.plan.tasks if task.assignee is None and task.status != "completed")
        return [task for task in left if not any(work.can_do(task) for work in self.works)]

    async def _tell(self, found: FoundPlan, tasks: Sequence[Task]) -> None:
        names = ", ".join(task.name for task in tasks)
        summary = (
            f"{names} of {found.repo.full_name}#{found.number}: no work of this SOUL can do that, somebody else has to"
        )
        reason = "; ".join(task.title for task in tasks)
        uri = found.issue.html_url
        await self.journal.record(Entry("decision", self.name, summary, line="warn", reason=reason, trigger_uri=uri))
