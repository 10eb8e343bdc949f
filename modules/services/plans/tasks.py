"""Which tasks of a plan may be taken up, and the labels of its issue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from modules.services.plans.types import ACTIVE_TASKS, Plan, PlanLabel, Task

PLAN_LABEL = "plan"

_CLAIMABLE = frozenset({"pending", "blocked"})
_STATUS_LABELS = frozenset(f"{PLAN_LABEL}:{status}" for status in get_args(PlanLabel))


def get_claimable_tasks(plan: Plan) -> list[Task]:
    """Return the tasks that nobody has and that wait for nothing, in the order of the plan.

    A task on which somebody is said to work, but nobody in particular, counts as pending; one that is unclear is
    nobody's to take.
    """
    completed = {task.name for task in plan.tasks if task.status == "completed"}
    return [
        task
        for task in plan.tasks
        if task.assignee is None
        and not task.unclear
        and (task.status in _CLAIMABLE or task.status in ACTIVE_TASKS)
        and completed.issuperset(task.dependencies)
    ]


def plan_labels(labels: Sequence[str], status: PlanLabel) -> tuple[str, ...]:
    """Return the labels of a plan's issue with this status; labels of other kinds keep their places."""
    others = tuple(label for label in labels if label.lower() not in _STATUS_LABELS)
    marked = others if PLAN_LABEL in (label.lower() for label in others) else (PLAN_LABEL, *others)
    return (*marked, f"{PLAN_LABEL}:{status}")
