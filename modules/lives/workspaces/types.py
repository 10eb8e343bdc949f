"""What the life in workspaces reads there, and what a step of its cycle is. Values and protocols only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from typing import Literal, Protocol

from adapters.github.types import Issue, Repo
from modules.services.plans.types import Plan, Task
from modules.services.workspaces.watched import WatchedWorkspace

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


@dataclass(frozen=True, slots=True)
class PolledWorkspace:
    """A workspace as it was read when the cycle began.

    `issues` are its open issues, pull requests and plans among them, the newest first; `plans` are those of them that
    hold a plan, none where the workspace is finished.
    """

    watched: WatchedWorkspace
    issues: tuple[Issue, ...]
    plans: tuple[FoundPlan, ...]

    @property
    def repo(self) -> Repo:
        """Where it is."""
        return Repo(self.watched.owner, self.watched.repo)

    @property
    def is_finished(self) -> bool:
        """Whether an issue said that all is done there, when the cycle began."""
        return self.watched.finished_issue_number is not None


@dataclass(frozen=True, slots=True)
class Poll:
    """What one cycle read at its beginning, at the time `at`; `unread` are what could not be read, a line each."""

    at: datetime
    workspaces: tuple[PolledWorkspace, ...]
    unread: tuple[str, ...] = ()

    @property
    def plans(self) -> tuple[FoundPlan, ...]:
        """The open plans of all workspaces."""
        return tuple(plan for one in self.workspaces for plan in one.plans)

    @property
    def unfinished(self) -> Poll:
        """The same without the workspaces that are finished."""
        return replace(self, workspaces=tuple(one for one in self.workspaces if not one.is_finished))

    def without(self, gone: Collection[PlanKey]) -> Poll:
        """Return the same without plans that were closed since."""
        return replace(self, workspaces=tuple(_without(one, gone) for one in self.workspaces)) if gone else self


def _without(one: PolledWorkspace, gone: Collection[PlanKey]) -> PolledWorkspace:
    return replace(one, plans=tuple(plan for plan in one.plans if plan.key not in gone))


class Place(IntEnum):
    """The order of the steps of a cycle; a place may be empty, and several steps in one run as they were handed in."""

    SENTINEL = 1
    STUCK_TASKS = 2
    DUPLICATE_PLANS = 6
    DUPLICATE_COMMENTS = 7
    PROGRESS = 8
    SYNTHESIS = 9
    CLAIM = 10
    OPEN_ISSUES = 13
    HOUSEKEEPING = 14


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of a step.

    Attributes:
        ends_cycle: no later step runs in this cycle, because what was read is out of date.
        runs_again: the next cycle begins a few seconds after this one, as after a merge.
        closed: plans that are open no more; later steps do not see them.
        note: a few words for the line that ends the cycle, without a full stop; "" for nothing worth telling.

    """

    ends_cycle: bool = False
    runs_again: bool = False
    closed: tuple[PlanKey, ...] = ()
    note: str = ""


class Step(Protocol):
    """One step of the cycle over all workspaces. Built once in `life.py`, handed to the cycle, and run there.

    A step reads what the poll does not tell itself, and reads again what it changes, right before it changes that. It
    records its own decisions in the journal. Where it uses the model for long it takes the attention itself
    (`Attention.take`). What it raises ends this step only, unless it is `Fatal` or `Transient`.

    Attributes:
        name: for the journal, in the form of `duplicate-plans`.
        place: where it stands in the order.
        acts: it changes something or uses the model: it runs only while the SOUL does nothing else.
        sees_finished: its poll holds finished workspaces too.

    """

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> Place: ...
    @property
    def acts(self) -> bool: ...
    @property
    def sees_finished(self) -> bool: ...

    async def run(self, poll: Poll) -> StepResult:
        """Do it once, for as many workspaces as this step takes in one cycle."""
        ...


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """How many tasks there are (`total`), and how they stand.

    `active` are those that somebody has, `free` those that anybody may take now, `waiting` those that wait for others.
    """

    total: int
    completed: int
    active: int
    blocked: int
    free: int
    waiting: int


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task that is ours for as long as the work on it lasts, under the claim of this `epoch`.

    The plan is as it was read before it was claimed. `is_ours` reads the plan again and returns whether the task is
    still ours. The work asks it right before anything of it becomes public, and ends with `Lost` where it is not.
    """

    found: FoundPlan
    task: Task
    epoch: int
    is_ours: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull request was opened, or stood already: its address, and a summary for the comment on the plan.

    Its branch is that of `get_task_branch_name`, and its body holds `Part of #<issue>`: by these all find it.
    """

    url: str
    summary: str


TaskProblem = Literal[
    "error",  # the work ended in an error
    "too_slow",  # it was not done in the time that it may take
    "unreadable",  # something that it needs could not be read
    "document_unreadable",  # a document that stands there could not be read as text
    "document_too_long",  # a document that stands there is too long to be written anew
    "document_unfit",  # what the model wrote cannot be offered
    "not_allowed",  # a rule forbids an act of it
    "needs_owner",  # an act of it waits for the owner's yes
    "not_sent",  # an act of it was refused, or could not leave
]
"""Why a task was not done, as the comment on the plan tells it: the phrase `task_problem.…`."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The task cannot be done as things stand, because of the file `about` if it names one.

    `lacks` is what is wrong with a document, as the phrase `document_problem.…` tells it. `detail` is for the owner
    alone.
    """

    problem: TaskProblem
    detail: str = ""
    about: str = field(default="", compare=False)
    lacks: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The work went wrong; its fields are those of `Blocked`. After three failures a task is left alone."""

    problem: TaskProblem
    detail: str = ""
    about: str = field(default="", compare=False)
    lacks: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Deferred:
    """Nothing came of it, through no fault of the task: no budget, no model, no answer of GitHub.

    It is as it was before, nothing is said of it, and it is tried again after a pause, of `retry_after` seconds at
    least. `reason` is for the owner.
    """

    reason: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The task is not ours any more: the plan is left as it stands."""


WorkResult = Opened | Blocked | Failed | Deferred | Lost


class TaskWork(Protocol):
    """A kind of work on tasks of plans. Only tasks that some work can do are claimed.

    It is cancelled where the task is lost while it works. After `kill -9` it may be asked to do the same task again, so
    what it makes public has stable keys. It takes the attention itself where it uses the model.
    """

    def can_do(self, task: Task) -> bool:
        """Return whether this is the work for a task. Pure, and without a request."""
        ...

    async def do(self, work: HeldTask) -> WorkResult:
        """Do the task and return what came of it. What it raises counts as a failure, unless that will pass.

        `Transient`, `BudgetExceeded` and `Auth` are the same as `Deferred`.
        """
        ...
