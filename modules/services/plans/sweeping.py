"""Sweeps the tasks of one plan: locks and claims whose holder is gone, and tasks whose pull request was merged.

Whoever sees them does it. Each change expects what was read, so that of several who sweep one does it, and none harms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from adapters.github.types import Repo
from modules.services.plans.claim_requests import ClaimRequests
from modules.services.plans.claim_types import ClaimState
from modules.services.plans.leases import dead_holder, dead_locks, lease_of
from modules.services.plans.plan_reading import PlanReading
from modules.services.plans.types import ACTIVE_TASKS, Expected, Plan, TaskChange


@dataclass(frozen=True, slots=True)
class Swept:
    """What was done for a task: `completed` because its pull request was merged, or `freed` from `holder`."""

    task: int
    code: Literal["completed", "freed"]
    holder: str


def may_hold_dead_claims(plan: Plan, held: Collection[int]) -> bool:
    """Return whether a plan is worth a closer look: somebody works on one of its tasks but the `held`, or did."""
    others = [task for task in plan.tasks if task.number not in held]
    return any(task.status == "blocked" or (task.status in ACTIVE_TASKS and task.assignee) for task in others)


async def sweep_plan(
    requests: ClaimRequests, reading: PlanReading, repo: Repo, held: Collection[int] = ()
) -> list[Swept]:
    """Sweep the tasks of a plan but those that we hold ourselves, and return what changed on their lines.

    A task on which its holder still works is left alone.
    """
    swept: list[Swept] = []
    for task in reading.plan.tasks if reading.plan else ():
        if task.number in held:
            continue
        state = ClaimState(requests.login, reading.issue.number, task.number)
        snapshot, one = reading.snapshot(task.number), lease_of(state, repo.owner, repo.name, reading.at)
        for epoch in dead_locks(snapshot):
            await requests.delete_dead_lock(one, epoch)
        holder = dead_holder(snapshot, task.number)
        is_merged = task.number in reading.merged and task.status == "blocked" and not task.assignee
        if not (holder or is_merged):
            continue
        status: Literal["completed", "pending"] = "completed" if task.number in reading.merged else "pending"
        expected = Expected(frozenset({holder}), frozenset({task.status}))
        answer = await requests.change_line(one, TaskChange(status, ""), expected)
        if answer.code == "written":
            swept.append(Swept(task.number, "completed" if status == "completed" else "freed", holder))
    return swept
