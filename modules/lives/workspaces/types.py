"""What the life in workspaces reads there. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.types import Repo
from modules.services.plans.types import Plan


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """An open issue that holds a plan."""

    repo: Repo
    number: int
    plan: Plan


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
