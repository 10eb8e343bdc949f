"""A lease is renewed while its task is ours, ends where it is not, and is swept when its holder died."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from modules.services.claims.policy import (
    GRACE,
    LEASE,
    Claim,
    DeleteLock,
    EndClaim,
    Lease,
    ResetLine,
    Snapshot,
    UnassignSelf,
    after_start,
    dead_holder,
    dead_locks,
    judge_lease,
    orphan_of_task_in_work,
    release_actions,
    renewed,
)
from modules.services.plans.types import Plan, Task, TaskStatus

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=6)
OWN = Claim(9, "sh-marvin", 3, 2, NOW + LEASE)
HELD = Lease(
    "acme",
    "shop",
    12,
    3,
    "sh-marvin",
    "held",
    2,
    has_lock=True,
    since=NOW,
    renewed_at=NOW,
    until=NOW + LEASE,
    comment_id=9,
)


def _snapshot(
    assignee: str | None = "SH-Marvin",
    status: TaskStatus = "in_progress",
    *,
    locks: Mapping[int, datetime] | None = None,
    claims: Sequence[Claim] = (OWN,),
    epoch: int = 2,
    at: datetime = NOW,
) -> Snapshot:
    plan = Plan("x", tasks=(Task(3, "a", status, assignee),))
    return Snapshot(at, plan, (), {2: NOW} if locks is None else locks, tuple(claims), epoch)


@pytest.mark.parametrize(
    ("snapshot", "now", "code"),
    [
        (_snapshot(), NOW, "keep"),
        (_snapshot(), LATER, "renew"),
        (None, LATER, "keep"),
        (None, NOW + LEASE, "over"),
        (_snapshot(), NOW + LEASE, "over"),
        (_snapshot("sh-z"), NOW, "lost"),
        (_snapshot(status="pending"), NOW, "lost"),
        (_snapshot(locks={}), NOW, "lost"),
        (_snapshot(locks={2: NOW, 3: NOW}), NOW, "lost"),
        (_snapshot(None, "pending"), NOW, "restore"),
        (_snapshot(None, "pending"), LATER, "lost"),
        (_snapshot(None, "pending", claims=()), NOW, "lost"),
        (_snapshot(None, "pending", claims=[Claim(8, "sh-z", 3), OWN]), NOW, "lost"),
        (replace(_snapshot(), plan=None), NOW, "lost"),
        (replace(_snapshot(), locks=None), NOW, "keep"),
    ],
)
def test_what_becomes_of_a_lease(snapshot: Snapshot | None, now: datetime, code: str) -> None:
    assert judge_lease(HELD, snapshot, now) == code


def test_a_renewed_lease_lasts_half_an_hour_from_then_on() -> None:
    assert renewed(HELD, LATER).until == LATER + LEASE
    assert judge_lease(renewed(HELD, LATER), _snapshot(), LATER) == "keep"


def test_after_a_start_what_was_won_goes_on_and_the_rest_is_undone() -> None:
    assert after_start(HELD, LATER) == HELD
    assert after_start(HELD, NOW + LEASE).stage == "ending"
    assert after_start(replace(HELD, stage="claiming"), NOW).stage == "ending"


def test_a_task_is_given_back_with_the_lock_last() -> None:
    kinds = [type(action) for action in release_actions(HELD, status="blocked", busy=False)]
    assert kinds == [EndClaim, ResetLine, UnassignSelf, DeleteLock]
    bare = replace(HELD, comment_id=None, has_lock=False)
    (line,) = release_actions(bare, status="completed", busy=True)
    assert isinstance(line, ResetLine)
    assert line.expected.assignees == frozenset({"sh-marvin"})
    assert (line.change.status, line.change.assignee) == ("completed", "")


@pytest.mark.parametrize(
    ("snapshot", "dead"),
    [
        (_snapshot(locks={1: NOW, 2: NOW}), [1]),
        (_snapshot(at=NOW + LEASE), []),
        (_snapshot(at=NOW + LEASE + GRACE), [2]),
        (_snapshot(locks={3: NOW}, at=NOW + LEASE * 2), []),
        (_snapshot(None, "pending", locks={3: NOW}, at=NOW + LEASE), []),
        (_snapshot(None, "pending", locks={3: NOW}, at=NOW + LEASE + GRACE), [3]),
        (_snapshot(locks={2: NOW}, claims=()), [2]),
        (replace(_snapshot(), locks=None), []),
    ],
)
def test_a_lock_is_dead_whose_claim_has_ended_and_one_below_the_newest(snapshot: Snapshot, dead: list[int]) -> None:
    assert dead_locks(snapshot, 3) == dead


@pytest.mark.parametrize(
    ("snapshot", "epoch"),
    [
        (_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE), 0),
        (_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE + GRACE), 3),
        (_snapshot(locks={3: NOW}, claims=[replace(OWN, until=None)], at=NOW + LEASE * 2), 0),
        (replace(_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE * 2), has_pull_request=True), 0),
        (_snapshot(None, "pending", locks={3: NOW}, claims=(), at=NOW + LEASE * 2), 0),
        (_snapshot(claims=(), at=NOW + LEASE * 2), 0),
    ],
)
def test_a_task_in_work_may_be_that_of_an_orphaned_lock(snapshot: Snapshot, epoch: int) -> None:
    assert orphan_of_task_in_work(snapshot, 3) == epoch


@pytest.mark.parametrize(
    ("snapshot", "login"),
    [
        (_snapshot(at=NOW + LEASE + GRACE), "SH-Marvin"),
        (_snapshot("sh-older", claims=[Claim(1, "sh-older", 3)], at=NOW + LEASE * 9), ""),
        (_snapshot("sh-other", at=NOW + LEASE + GRACE), ""),
        (replace(_snapshot(at=NOW + LEASE + GRACE), has_pull_request=True), ""),
        (_snapshot(None, "pending", at=NOW + LEASE + GRACE), ""),
    ],
)
def test_who_has_a_task_though_the_claim_has_ended(snapshot: Snapshot, login: str) -> None:
    assert dead_holder(snapshot, 3) == login
