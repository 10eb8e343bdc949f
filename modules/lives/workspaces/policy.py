"""How far plans are, and in which words that is told. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from common.wording import counted
from modules.lives.workspaces.types import PlanProgress, Poll
from modules.services.claims.policy import get_claimable_tasks
from modules.services.plans.types import ACTIVE_TASKS, FoundPlan, Plan, Task, has_docs_tasks


def progress_of(plan: Plan) -> PlanProgress:
    """Return how far a plan is. A task on which nobody in particular works counts as free, or as waiting."""
    free = {task.number for task in get_claimable_tasks(plan)}
    counted = Counter(_standing(task, free) for task in plan.tasks)
    return PlanProgress(
        total=len(plan.tasks),
        completed=counted["completed"],
        active=counted["active"],
        blocked=counted["blocked"],
        free=counted["free"],
        waiting=counted["waiting"],
    )


def _standing(task: Task, free: set[int]) -> str:
    if task.status in {"completed", "blocked"}:
        return task.status
    if task.status in ACTIVE_TASKS and task.assignee:
        return "active"
    return "free" if task.number in free else "waiting"


def total_of(plans: Iterable[FoundPlan]) -> PlanProgress:
    """Return how far several plans are together."""
    each = [progress_of(one.plan) for one in plans]
    return PlanProgress(
        total=sum(one.total for one in each),
        completed=sum(one.completed for one in each),
        active=sum(one.active for one in each),
        blocked=sum(one.blocked for one in each),
        free=sum(one.free for one in each),
        waiting=sum(one.waiting for one in each),
    )


def summary_of(plans: Sequence[FoundPlan]) -> str:
    """Return one line on the plans of all workspaces that are watched."""
    if not plans:
        return "No plan is open in the workspaces"
    sums = total_of(plans)
    parts = {
        "done": sums.completed,
        "in work": sums.active,
        "blocked": sums.blocked,
        "free": sums.free,
        "waiting for others": sums.waiting,
    }
    how = ", ".join(f"{number} {what}" for what, number in parts.items() if number)
    tasks = f"{counted(sums.total, 'task')}{f': {how}' if how else ''}"
    return f"{counted(len(plans), 'plan')} with {tasks}"


def line_of(poll: Poll, notes: Sequence[str] = ()) -> str:
    """Return the line that ends a cycle: how far the plans are, what else there is, and what the steps did."""
    finished = sum(one.is_finished for one in poll.workspaces)
    parts = [summary_of(poll.plans)]
    if not poll.plans and (others := sum(len(one.issues) for one in poll.unfinished.workspaces)):
        parts.append(f"{counted(others, 'other issue')} open")
    if finished:
        parts.append(f"{finished} of {len(poll.workspaces)} workspaces finished")
    return "; ".join((*parts, *notes))


def plans_to_claim_in(plans: Iterable[FoundPlan]) -> list[FoundPlan]:
    """Return the plans with tasks that anybody may take: those with the fewest first, so that they get done."""
    open_tasks = [(len(get_claimable_tasks(one.plan)), one.key, one) for one in plans]
    return [one for count, _, one in sorted(open_tasks, key=lambda row: row[:2]) if count]


def tasks_to_claim(plan: Plan) -> list[Task]:
    """Return the tasks that anybody may take, those that make a page of documents first."""

    def makes_no_page(task: Task) -> bool:
        pages = has_docs_tasks([task])
        return not (pages.has_agents_md or pages.has_scenarios_md)

    return sorted(get_claimable_tasks(plan), key=lambda task: (makes_no_page(task), task.number))
