"""The protocol by which a SOUL claims a task, as a function from an event to the next actions. Pure.

The caller carries out the actions of a step in order, and passes on the answer to the last one. A claim that is won or
lost has no further step; the actions that a lost claim leaves may be repeated safely.

The branch `soul/<issue>-task-<number>-<epoch>` is the lock: of several claimants, the service lets one make it. That
one has won, and writes the line and the comment by which peers of other makers recognize a claim. Only if no branch can
be made do the line and the comments decide, after the waits of the older protocol. See `docs/plans.md`.
"""

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
"""How often a claimant waits once more for its own write to become visible."""
QUICK_S = 2.0
"""The time of a request that took longer than this is added to the wait behind it."""

_LOCK = re.compile(r"(?:refs/heads/)?soul/([0-9]{1,9})-task-([0-9]{1,9})-([0-9]{1,9})")

Step = tuple[ClaimState, tuple[Action, ...]]


def begin_claim(me: str, issue: int, number: int, snapshot: Snapshot) -> Step:
    """Return the first step, given what was read of the plan: make the lock, or lose if the task is not free."""
    state = ClaimState(me, issue, number, until=snapshot.at + LEASE)
    if taken := holder_of(snapshot, number, me):
        return _lose(state, *taken)
    epoch = 1 + max(snapshot.epoch, snapshot.newest_lock)
    seen = max((claim.comment_id for claim in snapshot.claims), default=0)
    is_busy = snapshot.plan is not None and works_elsewhere(snapshot.plan, number, me)
    chosen = replace(state, epoch=epoch, stage="locking", seen=seen, is_busy=is_busy)
    return (chosen, (CreateLock(epoch),)) if snapshot.locks is not None else _write(chosen)


def advance_claim(state: ClaimState, event: ClaimEvent) -> Step:  # noqa: C901, PLR0911 - one line per event
    """Return the state after an event and the next actions. Raises `ValueError` for an event that is impossible now."""
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
    """Return the name of the lock of a task at an epoch; it leaves out the title, as people may change that."""
    return f"soul/{issue}-task-{number}-{epoch}"


def parse_lock_branch(ref: str) -> tuple[int, int, int] | None:
    """Return the issue, task and epoch of a lock; None if the branch is not one."""
    found = _LOCK.fullmatch(ref)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def step_down(state: ClaimState) -> tuple[Action, ...]:
    """Return the actions that undo a claim of ours; if we work on another task of the plan, we stay assigned."""
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
    """Return whether `login` works on another task of the plan."""
    active = (task for task in plan.tasks if task.number != number and task.status in ACTIVE_TASKS)
    return any((task.assignee or "").lower() == login.lower() for task in active)


def holder_of(snapshot: Snapshot, number: int, me: str) -> tuple[LoseCode, str] | None:
    """Return why a task may not be claimed, and who has it if known; None if it may."""
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
    """Return whether the task can be claimed, or was ours when we stopped."""
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


def _decide(state: ClaimState, snapshot: Snapshot | None) -> Step:  # noqa: PLR0911 - one line per decision
    if snapshot is None or snapshot.plan is None or (task := snapshot.plan.task(state.number)) is None:
        return _lose(state, "failed")
    if other := _earlier(state, snapshot):
        return _lose(state, "earlier_claim", other)
    contenders = claim_contenders(snapshot.assignees, snapshot.plan, state.number, state.me)
    second = replace(state, round=2)
    if not task.assignee and state.round == 2 and state.looks < MOST_LOOKS:  # noqa: PLR2004 - the second of two rounds
        # NOTE(self): our own write is not visible yet, or a claimant that steps down has overwritten it.
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
    """Decide a claim after its comment was posted: all claimants see one order of comments, and the first one wins."""
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
    # NOTE(self): a claimant that reads our comment steps down and empties the line; any other stays there.
    again = replace(state, looks=state.looks + 1)
    return again, (ClaimWait(PROPAGATION_S), PlanRead()) if name else (
        _own_line(state),
        ClaimWait(CONTEST_S),
        PlanRead(),
    )


def _earlier(state: ClaimState, snapshot: Snapshot) -> str:
    """Return who claimed the task before us, by an earlier comment or a lower name of the older protocol, or ""."""
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
