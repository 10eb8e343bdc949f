"""The protocol by which a SOUL claims a task: from what happened to what is to be done next. Pure.

Whoever drives it carries the actions of a step out in their order, and tells the answer to the last of them. A claim
that is won or lost has no further step; what a lost one leaves to do may be tried again without harm.

The branch `soul/<issue>-task-<number>-<epoch>` is the lock: of several who make it, the service lets one, and who has
it writes the line and the comment by which peers of another maker know a claim, and has won. Only where no branch can
be made do the line and the comments decide, after the waits of the older protocol. `docs/plans.md` tells what holds.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from modules.services.claims.policy import (
    GRACE,
    LEASE,
    Action,
    AssignSelf,
    Claim,
    ClaimAnswer,
    ClaimEvent,
    ClaimState,
    ClaimWait,
    CreateLock,
    DeleteLock,
    EndClaim,
    LineAnswer,
    LockAnswer,
    LoseCode,
    PlanRead,
    PostClaim,
    ResetLine,
    Snapshot,
    UnassignSelf,
    WriteLine,
    claim_contenders,
    decide_claim,
    get_claimable_tasks,
)
from modules.services.plans.types import ACTIVE_TASKS, UNDONE_TASKS, Expected, Plan, Task, TaskChange

CONSENSUS_S = 5.0
CONTEST_S = 3.0
PROPAGATION_S = 5.0
MOST_LOOKS = 4
"""How often a claimant waits once more for its own write to show."""
QUICK_S = 2.0
"""A request that took longer than this adds its time to the wait behind it."""

_LOCK = re.compile(r"(?:refs/heads/)?soul/([0-9]{1,9})-task-([0-9]{1,9})-([0-9]{1,9})")

Step = tuple[ClaimState, tuple[Action, ...]]


def begin_claim(me: str, issue: int, number: int, snapshot: Snapshot) -> Step:
    """Return the first step, by what was read of the plan: the lock is to be made, or the task is not to be had."""
    state = ClaimState(me, issue, number, until=snapshot.at + LEASE)
    if taken := holder_of(snapshot, number, me):
        return _lose(state, *taken)
    epoch = 1 + max(snapshot.epoch, snapshot.newest_lock)
    seen = max((claim.comment_id for claim in snapshot.claims), default=0)
    is_busy = snapshot.plan is not None and works_elsewhere(snapshot.plan, number, me)
    chosen = replace(state, epoch=epoch, stage="locking", seen=seen, is_busy=is_busy)
    return (chosen, (CreateLock(epoch),)) if snapshot.locks is not None else _write(chosen)


def advance_claim(state: ClaimState, event: ClaimEvent) -> Step:  # noqa: C901, PLR0911 - a line for each event
    """Return the state after an event, and what is to be done. Raises `ValueError` for one that cannot come now."""
    match state.stage, event:
        case "locking", LockAnswer(code=code):
            return _locked(state, code)
        case "writing", LineAnswer(code="written") if state.has_lock:
            return _claim(state, state.until)
        case "writing", LineAnswer(code="written", took_s=took_s):
            wait = CONSENSUS_S if state.round == 1 else CONTEST_S
            return replace(state, stage="waiting"), (ClaimWait(wait + _late(took_s)), PlanRead())
        case "writing", LineAnswer(code="conflict"):
            return _lose(replace(state, has_written=False), "taken")
        case "reasserting", LineAnswer(code="written" | "conflict", took_s=took_s):
            return replace(state, stage="waiting"), (ClaimWait(CONTEST_S + _late(took_s)), PlanRead())
        case (("writing" | "reasserting"), LineAnswer(code="failed")):
            return _lose(state, "failed")
        case "waiting", PlanRead(snapshot=snapshot):
            return _decide(state, snapshot)
        case "claiming", ClaimAnswer(comment_id=None):
            return _lose(state, "failed")
        case "claiming", ClaimAnswer(comment_id=comment_id) if state.has_lock:
            return replace(state, stage="won", comment_id=comment_id), ()
        case "claiming", ClaimAnswer(comment_id=comment_id):
            return replace(state, stage="confirming", comment_id=comment_id), (PlanRead(),)
        case "confirming", PlanRead(snapshot=snapshot):
            return _confirm(state, snapshot)
        case _:
            raise ValueError(f"{type(event).__name__} cannot come while a claim is {state.stage}")


def lock_branch(issue: int, number: int, epoch: int) -> str:
    """Return the branch that is the lock of a task at an epoch; the title is not in it, because people change that."""
    return f"soul/{issue}-task-{number}-{epoch}"


def parse_lock_branch(ref: str) -> tuple[int, int, int] | None:
    """Return the issue, task and epoch of a lock, or None where a branch is none."""
    found = _LOCK.fullmatch(ref)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def step_down(state: ClaimState) -> tuple[Action, ...]:
    """Return what undoes a claim of ours; who works on another task of the plan stays assigned to it."""
    actions: list[Action] = []
    if state.comment_id is not None:
        actions.append(EndClaim(state.comment_id))
    if state.has_written:
        actions.append(ResetLine(TaskChange("pending", ""), Expected(frozenset({state.me}), UNDONE_TASKS)))
    if state.is_assigned and not state.is_busy:
        actions.append(UnassignSelf())
    if state.has_lock:
        actions.append(DeleteLock(state.epoch))
    return tuple(actions)


def works_elsewhere(plan: Plan, number: int, login: str) -> bool:
    """Return whether somebody works on another task of the plan."""
    active = (task for task in plan.tasks if task.number != number and task.status in ACTIVE_TASKS)
    return any((task.assignee or "").lower() == login.lower() for task in active)


def holder_of(snapshot: Snapshot, number: int, me: str) -> tuple[LoseCode, str] | None:
    """Return why a task is not to be claimed, and who has it if that is known; None where it may be."""
    task = snapshot.plan.task(number) if snapshot.plan else None
    if snapshot.plan is None or task is None:
        return "not_claimable", ""
    if task.assignee and task.assignee.lower() != me.lower():
        return "taken", task.assignee
    if snapshot.has_pull_request or not _is_open(snapshot, task, me):
        return "not_claimable", ""
    for claim in snapshot.claims:
        if claim.soul.lower() != me.lower() and claim.until and claim.is_live(snapshot.at, grace=GRACE):
            return "taken", claim.soul
    return ("lock_held", "") if snapshot.unclaimed_lock and not snapshot.orphaned_lock else None


def _is_open(snapshot: Snapshot, task: Task, me: str) -> bool:
    """Whether it can be claimed, or was ours when we stopped."""
    if task.assignee:
        return task.status in ACTIVE_TASKS and task.assignee.lower() == me.lower()
    return snapshot.plan is not None and task in get_claimable_tasks(snapshot.plan)


def _locked(state: ClaimState, code: str) -> Step:
    if code in {"exists", "failed"}:
        return _lose(state, "lock_held" if code == "exists" else "failed")
    return _write(replace(state, has_lock=code == "created"))


def _write(state: ClaimState) -> Step:
    free = Expected(frozenset({"", state.me}), UNDONE_TASKS)
    write = WriteLine(TaskChange("claimed", state.me), free)
    return replace(state, stage="writing", is_assigned=True, has_written=True), (AssignSelf(), write)


def _decide(state: ClaimState, snapshot: Snapshot | None) -> Step:  # noqa: PLR0911 - a line for each decision
    if snapshot is None or snapshot.plan is None or (task := snapshot.plan.task(state.number)) is None:
        return _lose(state, "failed")
    if other := _earlier(state, snapshot):
        return _lose(state, "earlier_claim", other)
    contenders = claim_contenders(snapshot.assignees, snapshot.plan, state.number, state.me)
    second = replace(state, round=2)
    if not task.assignee and state.round == 2 and state.looks < MOST_LOOKS:  # noqa: PLR2004 - the second of two
        # NOTE(self): our own write does not show yet, or one that steps down has overwritten it.
        return _write_again(replace(state, looks=state.looks + 1))
    match decide_claim(task.assignee, contenders, state.me, state.round):
        case "win":
            return _claim(state, snapshot.at + LEASE)
        case "lose":
            return _lose(state, "contest", task.assignee or "")
        case "wait_contest":
            return second, (ClaimWait(CONTEST_S), PlanRead())
        case "reassert":
            theirs = Expected(frozenset({task.assignee or "", state.me}))
            return replace(second, stage="reasserting"), (WriteLine(TaskChange("claimed", state.me), theirs),)
        case "wait_propagation":
            return _write_again(second)


def _claim(state: ClaimState, until: datetime) -> Step:
    claim = Claim(0, state.me, state.number, state.epoch, until)
    return replace(state, stage="claiming", until=until, looks=0), (PostClaim(claim),)


def _write_again(state: ClaimState) -> Step:
    return replace(state, stage="reasserting"), (ClaimWait(PROPAGATION_S), _own_line(state))


def _own_line(state: ClaimState) -> WriteLine:
    return WriteLine(TaskChange("claimed", state.me), Expected(frozenset({"", state.me})))


def _confirm(state: ClaimState, snapshot: Snapshot | None) -> Step:
    """The last look: the comments of all who believe that they won are in one order, and the first has it."""
    task = snapshot.plan.task(state.number) if snapshot and snapshot.plan else None
    if snapshot is None or task is None:
        return _lose(state, "failed")
    if other := _earlier(state, snapshot):
        return _lose(state, "earlier_claim", other)
    name = (task.assignee or "").lower()
    if name == state.me.lower():
        return replace(state, stage="won"), ()
    if state.looks == MOST_LOOKS:
        return _lose(state, "contest", task.assignee or "")
    # NOTE(self): who reads our comment steps down and empties the line; who does not read it stays there.
    again = replace(state, looks=state.looks + 1)
    return again, (ClaimWait(PROPAGATION_S), PlanRead()) if name else (
        _own_line(state),
        ClaimWait(CONTEST_S),
        PlanRead(),
    )


def _earlier(state: ClaimState, snapshot: Snapshot) -> str:
    """Who has the task before us: by an earlier comment, or by a lower name of the older protocol."""
    mine = state.me.lower()
    for claim in snapshot.claims:
        theirs = claim.soul.lower()
        is_old = claim.until is None and claim.comment_id <= state.seen
        if theirs == mine or is_old or not claim.is_live(snapshot.at):
            continue
        comes_first = state.comment_id is None or claim.comment_id < state.comment_id
        if comes_first or (claim.until is None and theirs < mine):
            return claim.soul
    return ""


def _lose(state: ClaimState, code: LoseCode, holder: str = "") -> Step:
    lost = replace(state, stage="lost", code=code, holder=holder)
    return lost, step_down(lost)


def _late(took_s: float) -> float:
    return took_s if took_s > QUICK_S else 0.0
