"""The life in which tasks are done. It has a loop of its own: a task lasts long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modules.lives.tasks.types import TaskWorker
from modules.services.claims.claim_requests import repo_of
from modules.services.claims.claimer import Claimer
from modules.services.claims.offers import TaskOrders, TaskPlace
from modules.services.plans.types import Task
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import Perceiver


@dataclass(frozen=True, slots=True)
class HeldTasks(Perceiver):
    """Lets each task that is claimed have a row that waits, so that the work goes on after a restart."""

    claimer: Claimer
    table: WorkTable

    async def perceive(self) -> None:
        """Look at the claims that are held."""
        for lease in await self.claimer.held():
            await self.table.offer(TaskPlace(repo_of(lease), lease.issue, lease.number).row)


@dataclass(frozen=True, slots=True)
class TaskLife:
    """The loop of the life, what can be done in it, and what the owner says of a task."""

    loop: WorkLoop
    orders: TaskOrders
    workers: Sequence[TaskWorker]

    def can_do(self, task: Task) -> bool:
        """Return whether one of the workers can do a task."""
        return any(one.can_do(task) for one in self.workers)
