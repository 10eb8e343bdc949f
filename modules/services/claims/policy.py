"""The rules of a claim on a task: which task is free, who gets it, how long the claim lasts, and when it is renewed.

All peers decide in the same way (`docs/plans.md`): logins are compared in lower case, and the lowest one wins. Pure.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from common.clock import iso, parse_iso
from common.json_lines import split_lines
from common.result import Err
from modules.services.plans.events import parse_task_event_markers
from modules.services.plans.types import ACTIVE_TASKS, UNDONE_TASKS, Expected, Plan, Task, TaskChange, claim_key

LEASE = timedelta(minutes=30)
RENEWED_AFTER = timedelta(minutes=5)
GRACE = timedelta(minutes=2)
"""How long an expired claim is still respected, as clocks and answers may be late."""

Decision = Literal["win", "lose", "reassert", "wait_contest", "wait_propagation"]

_MARKER = re.compile(r"<!--[ \t]{0,8}task-claim[ \t]{0,8}(\{[^{}<>\n]{1,300}\})[ \t]{0,8}-->")
_CLAIM_WORD = re.compile(r"\b(?:claim|claimed|claiming)\b", re.IGNORECASE)
_ENDING = frozenset({"reset", "failed", "blocked", "timeout"})


@dataclass(frozen=True, slots=True)
class PlanComment:
    """A comment on a plan: its id (comments are ordered by id), its author's login, its text, and its last change."""

    id: int
    author: str
    body: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim in a comment. A peer with the older protocol gives no `epoch` (0) and no `until`."""

    comment_id: int
    soul: str
    task: int
    epoch: int = 0
    until: datetime | None = None

    def is_live(self, now: datetime, *, grace: timedelta = timedelta()) -> bool:
        """Return whether the claim still holds; one without an end holds until its task is reset."""
        return self.until is None or now < self.until + grace


def claim_contenders(assignees: Iterable[str], plan: Plan, number: int, me: str) -> list[str]:
    """Return the others who are assigned to the issue and may want this task, in lower case and sorted.

    An account that works on another task of the plan is assigned because of that, and is left out.
    """
    busy = {
        task.assignee.lower()
        for task in plan.tasks
        if task.number != number and task.assignee and task.status in ACTIVE_TASKS
    }
    return sorted({name.lower() for name in assignees} - busy - {me.lower()})


def decide_claim(line: str | None, contenders: Sequence[str], me: str, stage: Literal[1, 2]) -> Decision:
    """Return the decision, given who is on the line of the task (None or "" is nobody) and who else wants it."""
    name, mine = (line or "").lower(), me.lower()
    if stage == 2:  # noqa: PLR2004 - the second of two stages
        return "win" if name == mine else "lose"
    if name == mine:
        return "wait_contest" if contenders else "win"
    if not name:
        return "wait_propagation"
    return "lose" if name < mine else "reassert"


def claim_marker(claim: Claim) -> str:
    """Return the marker that describes a claim to machines. Raises `ValueError` for a claim without an end."""
    if claim.until is None:
        raise ValueError("a claim of ours ends")
    told = {"task": claim.task, "soul": claim.soul, "epoch": claim.epoch, "until": iso(claim.until)}
    return f"<!-- task-claim {json.dumps(told, separators=(',', ':'))} -->"


def with_claim_until(body: str, number: int, until: datetime) -> str:
    """Return the text of a claim's comment with another end; an end in the past releases the claim."""

    def renewed(found: re.Match[str]) -> str:
        claim = _claim(0, found[1])
        if claim is None or claim.task != number:
            return found[0]
        return claim_marker(Claim(0, claim.soul, claim.task, claim.epoch, until))

    return _MARKER.sub(renewed, body)


def claims_on(comments: Iterable[PlanComment], number: int) -> list[Claim]:
    """Return the claims on a task since it was last reset or failed, in the order of the comments.

    A claim counts only if its author is the SOUL that it names, and for at most one lease from the last change of the
    comment. The caller chooses whose comments are trusted.
    """
    claims: list[Claim] = []
    for comment in sorted(comments, key=lambda one: one.id):
        told = [event.event for event in parse_task_event_markers(comment.body) if event.task == number]
        if _ENDING.intersection(told):
            claims = []
        claims += _claims_in(comment, number)
    return claims


def highest_epoch(comments: Iterable[PlanComment], number: int) -> int:
    """Return the highest epoch of any claim on a task, even before its last reset; 0 if there is none."""
    return max((claim.epoch for comment in comments for claim in _claims_in(comment, number)), default=0)


def last_claim_end(comments: Iterable[PlanComment], number: int, soul: str) -> datetime | None:
    """Return when the last claim of a SOUL on a task ends or ended, even before a reset; None if there is none."""
    own = (claim for comment in comments for claim in _claims_in(comment, number) if claim.soul.lower() == soul.lower())
    return max((claim.until for claim in own if claim.until), default=None)


def _claims_in(comment: PlanComment, number: int) -> list[Claim]:
    read = (_claim(comment.id, found[1]) for found in _MARKER.finditer(comment.body))
    last = comment.updated_at + LEASE
    marked = [replace(claim, until=min(claim.until or last, last)) for claim in read if claim]
    own = [claim for claim in marked if claim.task == number and claim.soul.lower() == comment.author.lower()]
    if own or marked:
        return own
    return [Claim(comment.id, comment.author, number)] if _says_claimed(comment.body, number) else []


def _says_claimed(body: str, number: int) -> bool:
    """Return whether a peer says that it takes a task, by an event marker or in words."""
    if events := parse_task_event_markers(body):
        return any(event.task == number and event.event == "claimed" for event in events)
    name = re.compile(rf"\btask[ \t]{{1,8}}{number}(?![0-9])", re.IGNORECASE)
    return any(
        name.search(line) and _CLAIM_WORD.search(line)
        for line in split_lines(body)
        if not line.lstrip().startswith(">")
    )


def _claim(comment_id: int, text: str) -> Claim | None:
    try:
        told = json.loads(text)
        match told:
            case {"task": int(task), "soul": str(soul), "epoch": int(epoch), "until": str(until)} if epoch >= 0:
                return Claim(comment_id, soul, task, epoch, parse_iso(until))
    except ValueError:
        return None
    return None


LoseCode = Literal["not_claimable", "taken", "lock_held", "contest", "earlier_claim", "failed", "no_room"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a task at one reading of its plan.

    `locks` maps the epochs of its lock branches to when we first saw each; None if the repository has no branches to
    lock with. `claims` are those since the last reset, in the order of the comments; `epoch` is the highest of all
    claims, even older ones. `has_pull_request` is whether the task has an open one.
    """

    at: datetime
    plan: Plan | None
    assignees: tuple[str, ...] = ()
    locks: Mapping[int, datetime] | None = None
    claims: tuple[Claim, ...] = ()
    epoch: int = 0
    has_pull_request: bool = False

    @property
    def newest_lock(self) -> int:
        """The highest epoch of a lock, 0 if there is none."""
        return max(self.locks or (), default=0)

    @property
    def unclaimed_lock(self) -> int:
        """The newest lock if no comment claims the task with it yet, else 0."""
        return self.newest_lock if self.newest_lock > self.epoch else 0

    @property
    def orphaned_lock(self) -> int:
        """The unclaimed lock if it has been known for longer than a claim lasts, so that its maker is gone; else 0."""
        epoch = self.unclaimed_lock
        return epoch if self.locks and epoch and self.at >= self.locks[epoch] + LEASE + GRACE else 0


@dataclass(frozen=True, slots=True)
class PlanRead:
    """Read the plan, or the plan was read; the snapshot is None if that failed."""

    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class CreateLock:
    """Make the lock branch of this epoch. The answer is a `LockAnswer`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """The result: `unsupported` if branches cannot be made here, `failed` if the result is unknown."""

    code: Literal["created", "exists", "unsupported", "failed"]
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class AssignSelf:
    """Assign us to the issue. Nothing depends on the answer."""


@dataclass(frozen=True, slots=True)
class WriteLine:
    """Change the task if it is as expected. The answer is a `LineAnswer`."""

    change: TaskChange
    expected: Expected


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """The result of the change, and how long the request took, in seconds."""

    code: Literal["written", "conflict", "failed"]
    took_s: float = 0.0
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class ClaimWait:
    """Wait for this many seconds, or they have passed."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PostClaim:
    """Write the comment of the claim. The answer is a `ClaimAnswer`."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The id of the comment, or None if it is not known to exist."""

    comment_id: int | None
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class ResetLine:
    """Take the task from us, if its line still names us."""

    change: TaskChange
    expected: Expected


@dataclass(frozen=True, slots=True)
class UnassignSelf:
    """Unassign us from the issue."""


@dataclass(frozen=True, slots=True)
class EndClaim:
    """Make the comment of our claim say that it has ended, and add `note` on how, "" for nothing."""

    comment_id: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class DeleteLock:
    """Delete the lock branch of this epoch."""

    epoch: int


Action = (
    PlanRead
    | CreateLock
    | AssignSelf
    | WriteLine
    | ClaimWait
    | PostClaim
    | ResetLine
    | UnassignSelf
    | EndClaim
    | DeleteLock
)
ClaimEvent = PlanRead | LockAnswer | LineAnswer | ClaimWait | ClaimAnswer

Stage = Literal["locking", "writing", "waiting", "reasserting", "claiming", "confirming", "won", "lost"]


@dataclass(frozen=True, slots=True)
class ClaimState:
    """The progress of a claim of ours.

    `until` is when it ends. `epoch` is that of the claim, and `has_lock` whether its lock is ours. Without a lock,
    `round` is the stage of the decision, and `looks` how often it was put off. `seen` is the newest claim that existed
    before ours began. `is_busy` is whether we work on another task of the plan. If the claim is lost, `code` is why,
    and `holder` who has the task, if known.
    """

    me: str
    issue: int
    number: int
    until: datetime
    stage: Stage = "locking"
    epoch: int = 0
    has_lock: bool = False
    is_assigned: bool = False
    has_written: bool = False
    is_busy: bool = False
    seen: int = 0
    round: Literal[1, 2] = 1
    looks: int = 0
    comment_id: int | None = None
    code: LoseCode | None = None
    holder: str = ""


LeaseStage = Literal["claiming", "held", "ending"]
LeaseCode = Literal["keep", "renew", "restore", "lost", "over"]


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim of this SOUL on one task.

    It is `claiming` until it is won, `held` until it is released, and `ending` until all of it is undone. `epoch` is 0
    until one is chosen. `comment_id` is None until its comment exists.
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
        """The key of its task: `owner/repo#12/task-3`."""
        return claim_key(self.owner, self.repo, self.issue, self.number)


def judge_lease(lease: Lease, snapshot: Snapshot | None, now: datetime) -> LeaseCode:
    """Return what to do with a held lease: asked every few minutes, and before anything is published.

    `over`: it was not renewed in time. `lost`: somebody else has the task, or it was reset, so the work ends.
    `restore`: a late write of another claimant emptied its line; only in the first two minutes, because a later change
    is intended. A plan that could not be read (None) is no reason to stop while the lease lasts.
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
    """Return the lease after its comment was renewed."""
    return replace(lease, renewed_at=now, until=now + LEASE)


def after_start(lease: Lease, now: datetime) -> Lease:
    """Return a lease as found at the start of the program: one that is not held, or is over, is to be undone."""
    goes_on = lease.stage == "held" and now < lease.until
    return lease if goes_on else replace(lease, stage="ending")


def release_actions(
    lease: Lease, *, status: Literal["pending", "blocked", "completed"], busy: bool, note: str = ""
) -> list[Action]:
    """Return the actions that release a task; each may be repeated safely.

    `busy` is whether we work on another task of the plan, `note` what the comment of the claim says about its end.

    The line changes only if it still names us. The lock goes last, so that nobody takes a task that is only partly
    free.
    """
    actions: list[Action] = [] if lease.comment_id is None else [EndClaim(lease.comment_id, note)]
    actions.append(ResetLine(TaskChange(status, ""), Expected(frozenset({lease.soul}), UNDONE_TASKS)))
    actions += [] if busy else [UnassignSelf()]
    return [*actions, DeleteLock(lease.epoch)] if lease.has_lock else actions


def lease_of(state: ClaimState, owner: str, repo: str, now: datetime) -> Lease:
    """Return the lease of a claim at any stage."""
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
    """Return the epochs of the locks of a task that protect nothing any more, whoever made them.

    These are all but the newest, and the newest if its claim ended longer ago than `GRACE`, or if it is orphaned and
    nobody has the task. The epoch of a lock that was claimed with is never used again, as the comment of the claim
    keeps it.
    """
    newest = snapshot.newest_lock
    dead = [epoch for epoch in sorted(snapshot.locks or ()) if epoch < newest]
    live = any(claim.epoch >= newest and claim.is_live(snapshot.at, grace=GRACE) for claim in snapshot.claims)
    is_orphan = bool(snapshot.orphaned_lock) and _task_in_work(snapshot, number) is None
    is_dead = is_orphan if snapshot.unclaimed_lock else not live
    return [*dead, newest] if newest and is_dead else dead


def dead_holder(snapshot: Snapshot, number: int, *, grace: timedelta = GRACE) -> str:
    """Return the login that has a task but whose claim ended at least `grace` ago; "" if there is none.

    A peer with the older protocol gives no end; the time limit of its task is not decided here.
    """
    task = _task_in_work(snapshot, number)
    if task is None or snapshot.has_pull_request:
        return ""
    own = [claim for claim in snapshot.claims if claim.soul.lower() == (task.assignee or "").lower()]
    ended = own and not any(claim.is_live(snapshot.at, grace=grace) for claim in own)
    return (task.assignee or "") if ended else ""


def orphan_of_task_in_work(snapshot: Snapshot, number: int) -> int:
    """Return the orphaned lock of a task that somebody has without a claim, 0 if there is none.

    The maker of the lock may have the task, and is then gone; or a person may have taken it by hand.
    """
    is_claimed = snapshot.has_pull_request or any(claim.is_live(snapshot.at, grace=GRACE) for claim in snapshot.claims)
    return 0 if is_claimed or _task_in_work(snapshot, number) is None else snapshot.orphaned_lock


def _task_in_work(snapshot: Snapshot, number: int) -> Task | None:
    """Return the task if somebody has it, else None."""
    task = snapshot.plan.task(number) if snapshot.plan else None
    return task if task and task.assignee and task.status in ACTIVE_TASKS else None


def _is_lost(lease: Lease, snapshot: Snapshot) -> bool:
    """Return whether a later claim was made, or our lock is gone."""
    if snapshot.epoch > lease.epoch > 0:
        return True
    if not lease.has_lock or snapshot.locks is None:
        return False
    return lease.epoch not in snapshot.locks or max(snapshot.locks) > lease.epoch


def _has_first_claim(lease: Lease, snapshot: Snapshot) -> bool:
    """Return whether our comment is the first of those that still hold."""
    live = [claim for claim in snapshot.claims if claim.is_live(snapshot.at)]
    return bool(live) and live[0].comment_id == lease.comment_id


_CLAIMABLE = frozenset({"pending", "blocked"})


def get_claimable_tasks(plan: Plan) -> list[Task]:
    """Return the tasks that nobody has and that wait for no other task, in the order of the plan.

    An active task without an assignee counts as pending; one that is unclear may not be taken by anybody.
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
