"""What the protocol of a claim works with: what was read, what happened, what is to be done, what is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from common.result import Err
from modules.services.claims.claims import GRACE, LEASE, Claim
from modules.services.plans.types import Expected, Plan, TaskChange

LoseCode = Literal["not_claimable", "taken", "lock_held", "contest", "earlier_claim", "failed", "no_room"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one reading of a plan told of a task.

    `locks` are the epochs of its lock branches, each with the time since when we have seen it; None where the service
    has no branches to lock with. `claims` are those since the last reset, in the order of the service; `epoch` is the
    highest of any claim, also of older ones. `has_pull_request` tells of an open one for the task.
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
        """The highest epoch of a lock, 0 where there is none."""
        return max(self.locks or (), default=0)

    @property
    def unclaimed_lock(self) -> int:
        """The newest lock where no comment claims the task with it yet, 0 where there is none."""
        return self.newest_lock if self.newest_lock > self.epoch else 0

    @property
    def orphaned_lock(self) -> int:
        """The unclaimed lock, where it has been known for longer than a claim lasts: its maker is gone. Else 0."""
        epoch = self.unclaimed_lock
        return epoch if self.locks and epoch and self.at >= self.locks[epoch] + LEASE + GRACE else 0


@dataclass(frozen=True, slots=True)
class PlanRead:
    """The plan is to be read, or was read; the snapshot is None where that failed."""

    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class CreateLock:
    """The lock branch of this epoch is to be made. The answer is a `LockAnswer`."""

    epoch: int


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """What became of it: `unsupported` where branches cannot be made here, `failed` where that is not known."""

    code: Literal["created", "exists", "unsupported", "failed"]
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class AssignSelf:
    """We are to be assigned to the issue. Nothing depends on the answer."""


@dataclass(frozen=True, slots=True)
class WriteLine:
    """The task is to be changed where it is as expected. The answer is a `LineAnswer`."""

    change: TaskChange
    expected: Expected


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """What became of it, and how long the request took, in seconds."""

    code: Literal["written", "conflict", "failed"]
    took_s: float = 0.0
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class ClaimWait:
    """So many seconds are to pass, or have passed."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PostClaim:
    """The comment of the claim is to be written. The answer is a `ClaimAnswer`."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The id of the comment, or None where it is not known to stand."""

    comment_id: int | None
    refusal: Err | None = None


@dataclass(frozen=True, slots=True)
class ResetLine:
    """The task is to be nobody's again, where the line still names us."""

    change: TaskChange
    expected: Expected


@dataclass(frozen=True, slots=True)
class UnassignSelf:
    """We are to be unassigned from the issue."""


@dataclass(frozen=True, slots=True)
class EndClaim:
    """The comment of our claim is to say that it has ended, and `note` how, "" where nothing is to be said of that."""

    comment_id: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class DeleteLock:
    """The lock branch of this epoch is to be deleted."""

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
    """How far a claim of ours is.

    `until` is when it ends. `epoch` is that of the claim, and `has_lock` tells whether its lock is ours. Without one,
    `round` is the stage of the decision, and `looks` how often it was put off. `seen` is the newest claim that stood
    before ours began. `is_busy` tells whether we work on another task of the plan. Once lost, `code` tells why, and
    `holder` who has the task, if that is known.
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
