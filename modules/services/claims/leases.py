"""What becomes of a claim that was won: renewed while the work goes on, lost, or swept after its holder died. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from modules.services.claims.claim_types import (
    Action,
    ClaimState,
    DeleteLock,
    EndClaim,
    ResetLine,
    Snapshot,
    UnassignSelf,
)
from modules.services.claims.claims import GRACE, LEASE, RENEWED_AFTER
from modules.services.plans.naming import claim_key
from modules.services.plans.types import ACTIVE_TASKS, UNDONE_TASKS, Expected, Task, TaskChange

LeaseStage = Literal["claiming", "held", "ending"]
LeaseCode = Literal["keep", "renew", "restore", "lost", "over"]


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim of this SOUL on one task.

    It is `claiming` until it is won, `held` until it is given up, and `ending` until all of it is undone. `epoch` is 0
    until one is chosen. `comment_id` is None before its comment stands.
    """

    owner: str
    repo: str
    issue: int
    number: int
    soul: str
    stage: LeaseStage
    epoch: int
    has_lock: bool
    since: datetime
    renewed_at: datetime
    until: datetime
    comment_id: int | None = None

    @property
    def key(self) -> str:
        """The name of its task: `owner/repo#12/task-3`."""
        return claim_key(self.owner, self.repo, self.issue, self.number)


def judge_lease(lease: Lease, snapshot: Snapshot | None, now: datetime) -> LeaseCode:
    """Return what becomes of a lease that is held: asked every few minutes, and before anything is made public.

    `over` is one that was not renewed in time, and `lost` one whose task somebody else has, or that was reset: the work
    ends. `restore` is one whose line a late write of another claimant took away: in the first two minutes only, because
    who empties it later means it. A plan that could not be read (None) is no reason to stop while the lease lasts.
    """
    if now >= lease.until:
        return "over"
    if snapshot is None:
        return "keep"
    task = snapshot.plan.task(lease.number) if snapshot.plan else None
    if task is None or _is_lost(lease, snapshot):
        return "lost"
    if not task.assignee:
        is_young = now - lease.since < GRACE and task.status != "completed"
        return "restore" if is_young and _has_first_claim(lease, snapshot) else "lost"
    if task.assignee.lower() != lease.soul.lower() or task.status not in ACTIVE_TASKS:
        return "lost"
    return "renew" if now - lease.renewed_at >= RENEWED_AFTER else "keep"


def renewed(lease: Lease, now: datetime) -> Lease:
    """Return the lease as it is after its comment was renewed."""
    return replace(lease, renewed_at=now, until=now + LEASE)


def after_start(lease: Lease, now: datetime) -> Lease:
    """Return a lease that was found at the start of the program: what was not won, or is over, is to be undone."""
    goes_on = lease.stage == "held" and now < lease.until
    return lease if goes_on else replace(lease, stage="ending")


def release_actions(
    lease: Lease, *, status: Literal["pending", "blocked", "completed"], busy: bool, note: str = ""
) -> list[Action]:
    """Return what gives a task back; each may be done again without harm.

    `busy` is work on another task of the plan, `note` what the comment of the claim says of its end.

    The line is changed only where it still names us. The lock goes last: until then nobody takes a task half free.
    """
    actions: list[Action] = [] if lease.comment_id is None else [EndClaim(lease.comment_id, note)]
    actions.append(ResetLine(TaskChange(status, ""), Expected(frozenset({lease.soul}), UNDONE_TASKS)))
    actions += [] if busy else [UnassignSelf()]
    return [*actions, DeleteLock(lease.epoch)] if lease.has_lock else actions


def lease_of(state: ClaimState, owner: str, repo: str, now: datetime) -> Lease:
    """Return the lease of a claim, at any stage of it."""
    won = state.stage == "won"
    return Lease(
        owner=owner,
        repo=repo,
        issue=state.issue,
        number=state.number,
        soul=state.me,
        stage="held" if won else "claiming",
        epoch=state.epoch,
        has_lock=state.has_lock,
        since=now,
        renewed_at=now,
        until=state.until,
        comment_id=state.comment_id,
    )


def dead_locks(snapshot: Snapshot, number: int) -> list[int]:
    """Return the epochs of the locks of a task that hold nothing any more, whoever made them.

    These are all but the newest, and the newest where its claim has ended long enough ago, or where it is orphaned and
    nobody has the task. The epoch of a lock that was claimed with is never given again: the comment of the claim keeps
    it.
    """
    newest = snapshot.newest_lock
    dead = [epoch for epoch in sorted(snapshot.locks or ()) if epoch < newest]
    live = any(claim.epoch >= newest and claim.is_live(snapshot.at, grace=GRACE) for claim in snapshot.claims)
    is_orphan = bool(snapshot.orphaned_lock) and _task_in_work(snapshot, number) is None
    is_dead = is_orphan if snapshot.unclaimed_lock else not live
    return [*dead, newest] if newest and is_dead else dead


def dead_holder(snapshot: Snapshot, number: int, *, grace: timedelta = GRACE) -> str:
    """Return the login of who has a task and whose claim has ended for `grace`, or "" where there is none.

    A peer of the older protocol names no end; how long its task may take is not decided here.
    """
    task = _task_in_work(snapshot, number)
    if task is None or snapshot.has_pull_request:
        return ""
    own = [claim for claim in snapshot.claims if claim.soul.lower() == (task.assignee or "").lower()]
    ended = own and not any(claim.is_live(snapshot.at, grace=grace) for claim in own)
    return (task.assignee or "") if ended else ""


def orphan_of_task_in_work(snapshot: Snapshot, number: int) -> int:
    """Return the orphaned lock of a task that somebody has without a claim, 0 where there is none.

    Who made that lock may be who has the task, and is then gone; a person may have taken it by hand.
    """
    is_claimed = snapshot.has_pull_request or any(claim.is_live(snapshot.at, grace=GRACE) for claim in snapshot.claims)
    return 0 if is_claimed or _task_in_work(snapshot, number) is None else snapshot.orphaned_lock


def _task_in_work(snapshot: Snapshot, number: int) -> Task | None:
    """The task, where somebody has it."""
    task = snapshot.plan.task(number) if snapshot.plan else None
    return task if task and task.assignee and task.status in ACTIVE_TASKS else None


def _is_lost(lease: Lease, snapshot: Snapshot) -> bool:
    """Whether a later claim was made, or our lock is gone."""
    if snapshot.epoch > lease.epoch > 0:
        return True
    if not lease.has_lock or snapshot.locks is None:
        return False
    return lease.epoch not in snapshot.locks or max(snapshot.locks) > lease.epoch


def _has_first_claim(lease: Lease, snapshot: Snapshot) -> bool:
    """Whether our comment is the first of those that still hold."""
    live = [claim for claim in snapshot.claims if claim.is_live(snapshot.at)]
    return bool(live) and live[0].comment_id == lease.comment_id
