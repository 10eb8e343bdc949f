"""What the life in workspaces reads there, and what a step of its cycle is. Values and protocols only."""

from __future__ import annotations

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
        closed: plans that are open no more; later steps do not see them.
        note: a few words for the line that ends the cycle, without a full stop; "" for nothing worth telling.

    """

    ends_cycle: bool = False
    closed: tuple[PlanKey, ...] = ()
    note: str = ""


class CycleStep(Protocol):
    """One step of the cycle over all workspaces, which each derives from: built once in the wiring, and run there.

    A step reads what the poll does not tell itself, and reads again what it changes, right before it changes that. It
    records its own decisions in the journal. Where it uses the model for long it takes the attention itself
    (`Attention.take`). What it raises ends this step only, unless it is `Fatal` or `Transient`.

    Attributes:
        name: for the journal, in the form of `duplicate-plans`.
        place: where it stands in the order.
        acts: it changes something or uses the model: it runs only while the SOUL does nothing else.
        sees_finished: its poll holds finished workspaces too.

    """

    name: str
    place: Place
    acts: bool = True
    sees_finished: bool = False

    @abstractmethod
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
