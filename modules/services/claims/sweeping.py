"""Sweeps the tasks of one plan: locks and claims whose holder is gone, and tasks whose pull request was merged.

Whoever sees them does it. Each change expects what was read, so that of several who sweep one does it, and none harms.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from adapters.github.types import PullRequest, Repo
from modules.services.claims.claim_requests import ClaimRequests
from modules.services.claims.claim_types import ClaimState
from modules.services.claims.claims import GRACE
from modules.services.claims.leases import Lease, dead_holder, dead_locks, lease_of, orphan_of_task_in_work
from modules.services.claims.plan_reading import PlanReading
from modules.services.plans.types import Expected, Plan, Task, TaskChange

DeadCode = Literal["completed", "freed"]


@dataclass(frozen=True, slots=True)
class DeadClaim:
    """A task of which the claim by `holder` has ended ("" where nobody's name stands there), at this epoch.

    `code` tells what the task becomes: `completed` where its pull request, at the address `pull`, was merged, else
    `freed`. `closed` is its pull request, where that was closed without a merge.
    """

    task: Task
    code: DeadCode
    holder: str
    epoch: int
    pull: str = ""
    closed: PullRequest | None = None

    @property
    def is_decided(self) -> bool:
        """Whether its pull request was merged or closed, so that its holder need not be gone."""
        return self.code == "completed" or self.closed is not None


def may_hold_dead_claims(plan: Plan, held: Collection[int]) -> bool:
    """Return whether a plan is worth a closer look: one of its tasks but the `held` is to be done yet.

    Of a claim whose maker vanished early nothing but the lock stands, which the plan does not tell.
    """
    return any(task.status != "completed" for task in plan.tasks if task.number not in held)


def find_dead_claims(reading: PlanReading, held: Collection[int] = ()) -> list[DeadClaim]:
    """Return the tasks whose holder is gone or done, but those that we hold ourselves. Pure."""
    found: list[DeadClaim] = []
    for task in reading.plan.tasks if reading.plan else ():
        snapshot, pull = reading.snapshot(task.number), reading.merged.get(task.number, "")
        # NOTE(self): what was merged is done, and nothing that its holder may still write can be lost.
        holder = dead_holder(snapshot, task.number, grace=timedelta() if pull else GRACE)
        if task.number not in held and (holder or (pull and task.status == "blocked" and not task.assignee)):
            epoch = snapshot.epoch
            closed = reading.closed_since(task.number, reading.claim_comment(task.number, epoch, holder))
            code: DeadCode = "completed" if pull else "freed"
            found.append(DeadClaim(task, code, holder, epoch, pull, None if pull else closed))
    return found


async def find_orphaned_tasks(
    requests: ClaimRequests, reading: PlanReading, repo: Repo, held: Collection[int] = ()
) -> list[DeadClaim]:
    """Return the tasks whose holder vanished after the lock was made and before the claim was said."""
    found: list[DeadClaim] = []
    for task in reading.plan.tasks if reading.plan else ():
        epoch = 0 if task.number in held else orphan_of_task_in_work(reading.snapshot(task.number), task.number)
        if epoch and await requests.has_lock(_place(requests, reading, repo, task), epoch, task.assignee or ""):
            found.append(DeadClaim(task, "freed", task.assignee or "", epoch))
    return found


async def delete_dead_locks(
    requests: ClaimRequests, reading: PlanReading, repo: Repo, held: Collection[int] = ()
) -> None:
    """Delete the locks that hold nothing any more, of all tasks but those that we hold ourselves."""
    for task in reading.plan.tasks if reading.plan else ():
        for epoch in [] if task.number in held else dead_locks(reading.snapshot(task.number), task.number):
            await requests.delete_dead_lock(_place(requests, reading, repo, task), epoch)


async def settle_dead_claim(requests: ClaimRequests, reading: PlanReading, repo: Repo, dead: DeadClaim) -> bool:
    """Let a task be completed or free, where it stands as it was read; return whether it is."""
    change = TaskChange("completed" if dead.code == "completed" else "pending", "")
    expected = Expected(frozenset({dead.holder}), frozenset({dead.task.status}))
    answer = await requests.change_line(_place(requests, reading, repo, dead.task), change, expected)
    return answer.code == "written"


def _place(requests: ClaimRequests, reading: PlanReading, repo: Repo, task: Task) -> Lease:
    state = ClaimState(requests.login, reading.issue.number, task.number, reading.at)
    return lease_of(state, repo.owner, repo.name, reading.at)
