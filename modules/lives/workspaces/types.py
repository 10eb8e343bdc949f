"""The types of the workspaces life: what a cycle reads, and its steps. Values and protocols only."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import Protocol

from adapters.github.types import Issue, Repo
from modules.services.plans.types import FoundPlan, PlanKey
from modules.services.workspaces.watched import WatchedWorkspace


@dataclass(frozen=True, slots=True)
class PolledWorkspace:
    """A workspace as it was read when the cycle began.

    `issues` are its open issues, including pull requests and plans, the newest first; `plans` are those of them that
    contain a plan, none if the workspace is finished.
    """

    watched: WatchedWorkspace
    issues: tuple[Issue, ...]
    plans: tuple[FoundPlan, ...]

    @property
    def repo(self) -> Repo:
        """The repository of the workspace."""
        return Repo(self.watched.owner, self.watched.repo)

    @property
    def digest(self) -> str:
        """A digest of its open issues, which changes with each of them."""
        issues = sorted((one.number, one.version) for one in self.issues)
        return hashlib.sha256(repr(issues).encode()).hexdigest()[:16]

    @property
    def is_finished(self) -> bool:
        """Whether a sentinel was known there when the cycle began."""
        return self.watched.finished_issue_number is not None


@dataclass(frozen=True, slots=True)
class Poll:
    """What one cycle read at its beginning, at the time `at`; `unread` says what could not be read, a line each."""

    at: datetime
    workspaces: tuple[PolledWorkspace, ...]
    unread: tuple[str, ...] = ()

    @property
    def plans(self) -> tuple[FoundPlan, ...]:
        """The open plans of all workspaces."""
        return tuple(plan for one in self.workspaces for plan in one.plans)

    @property
    def unfinished(self) -> Poll:
        """The same poll without the finished workspaces."""
        return replace(self, workspaces=tuple(one for one in self.workspaces if not one.is_finished))

    def without(self, gone: Collection[PlanKey]) -> Poll:
        """Return the same poll without plans that were closed since."""
        return replace(self, workspaces=tuple(_without(one, gone) for one in self.workspaces)) if gone else self


def _without(one: PolledWorkspace, gone: Collection[PlanKey]) -> PolledWorkspace:
    return replace(one, plans=tuple(plan for plan in one.plans if plan.key not in gone))


class Place(IntEnum):
    """The order of the steps of a cycle. A place may be empty; several steps in one place run in the order given."""

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
    """The result of a step.

    Attributes:
        ends_cycle: no later step runs in this cycle, because what was read is out of date.
        closed: plans that are no longer open; later steps do not see them.
        note: a few words for the line that ends the cycle, without a full stop; "" for nothing.

    """

    ends_cycle: bool = False
    closed: tuple[PlanKey, ...] = ()
    note: str = ""


class CycleStep(Protocol):
    """The base of all steps of the cycle over all workspaces. A step is built once, in the wiring.

    A step reads what the poll does not contain, and reads again what it changes, right before it changes it. It records
    its own decisions in the journal. If it uses the model for long, it takes the attention itself (`Attention.take`).
    An exception ends this step only, unless it is `Fatal` or `Transient`.

    Attributes:
        name: for the journal, in the form of `duplicate-plans`.
        place: its position in the order.
        acts: whether it changes something or uses the model; then it runs only while the SOUL does nothing else.
        sees_finished: whether its poll contains finished workspaces too.

    """

    name: str
    place: Place
    acts: bool = True
    sees_finished: bool = False

    @abstractmethod
    async def run(self, poll: Poll) -> StepResult:
        """Run the step once, for as many workspaces as it handles in one cycle."""
        ...


@dataclass(frozen=True, slots=True)
class PlanProgress:
    """The number of tasks (`total`), and of those in each state.

    Somebody has an `active` task, anybody may take a `free` one now, and a `waiting` one waits for other tasks.
    """

    total: int
    completed: int
    active: int
    blocked: int
    free: int
    waiting: int
