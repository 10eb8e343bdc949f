"""A plan of work as an issue holds it, and its tasks. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adapters.github.types import Issue, Repo

TaskStatus = Literal["pending", "claimed", "in_progress", "completed", "blocked"]
PlanStatus = Literal["active", "complete", "blocked"]
PlanLabel = Literal["active", "complete", "blocked", "superseded"]

ACTIVE_TASKS: frozenset[TaskStatus] = frozenset({"claimed", "in_progress"})
"""The statuses in which somebody works on a task."""
UNDONE_TASKS: frozenset[TaskStatus] = ACTIVE_TASKS | {"pending", "blocked"}
"""All statuses of a task that is still to be done."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a plan.

    `assignee` is a login without `@`, or None. `dependencies` are `Task N`, as in the plan; `files` are paths. A task
    is `unclear` where something of it could not be read that decides whether it is free: then nobody may claim it.
    """

    number: int
    title: str
    status: TaskStatus = "pending"
    assignee: str | None = None
    estimate: str | None = None
    dependencies: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    description: str = ""
    unclear: bool = field(default=False, compare=False)

    @property
    def id(self) -> str:
        """Return the name by which peers know the task: `task-3`."""
        return f"task-{self.number}"

    @property
    def name(self) -> str:
        """Return the name by which other tasks depend on it: `Task 3`."""
        return f"Task {self.number}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan.

    An item of `verification` that was read begins with `✓ ` where it is done and with `○ ` where it is not; one without
    either is not done. `warnings` tell what in the text could not be taken as it stands, a line each.
    """

    title: str
    goal: str = ""
    context: str = ""
    tasks: tuple[Task, ...] = ()
    verification: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def status(self) -> PlanStatus:
        """Return `complete` when all tasks are completed, `blocked` when one is blocked, `active` otherwise."""
        statuses = {task.status for task in self.tasks}
        if statuses == {"completed"}:
            return "complete"
        return "blocked" if "blocked" in statuses else "active"

    def task(self, number: int) -> Task | None:
        """Return the task of this number, or None."""
        return next((task for task in self.tasks if task.number == number), None)


@dataclass(frozen=True, slots=True)
class TaskChange:
    """What is to change of a task: None leaves it as it is, an empty `assignee` takes the assignee away."""

    status: TaskStatus | None = None
    assignee: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What a task must be for a change to be made: its assignee is one of these (in any case; "" is nobody)."""

    assignees: frozenset[str] | None = None
    statuses: frozenset[TaskStatus] | None = None


@dataclass(frozen=True, slots=True)
class BodyUpdate:
    """A body after a change.

    `code` is `changed`; `same` when it says so already; `missing` when there is no such task; `conflict` when the task
    is not as expected. `body` is the body that was given, but for `changed`.
    """

    body: str
    code: Literal["changed", "same", "missing", "conflict"]


PlanKey = tuple[str, int]
"""The full name of a repository in lower case, and the number of a plan's issue."""


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """An open issue that holds a plan."""

    repo: Repo
    issue: Issue
    plan: Plan

    @property
    def number(self) -> int:
        """The number of its issue."""
        return self.issue.number

    @property
    def key(self) -> PlanKey:
        """What tells it from the plans of all workspaces."""
        return self.repo.full_name.lower(), self.issue.number
