"""What the life in workspaces and the life on tasks tell each other: which task may be taken, and that one ended."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.types import Repo
from modules.runtime.events import Event
from modules.services.work.types import NewWork, WorkItem

TASK = "task"
"""The kind of the rows of tasks."""


@dataclass(frozen=True, slots=True)
class TaskOffered(Event):
    """A row of a task is due."""


@dataclass(frozen=True, slots=True)
class TaskEnded(Event):
    """The work on a task is over, and its plan has changed."""


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where a task stands: task `number` of the plan in `issue` of `repo`."""

    repo: Repo
    issue: int
    number: int

    @property
    def row(self) -> NewWork:
        """The row of the task: `owner/repo#12/3`."""
        payload = {"owner": self.repo.owner, "repo": self.repo.name, "issue": self.issue, "number": self.number}
        key = f"{self.repo.full_name}#{self.issue}/{self.number}"
        return NewWork(TASK, key, payload, importance="commitment")


def place_of(item: WorkItem) -> TaskPlace:
    """Return where the task of a row stands. Raises `KeyError` for a row of another kind."""
    told = item.payload
    return TaskPlace(Repo(told["owner"], told["repo"]), told["issue"], told["number"])
