"""Proves who gets a task that several SOULs want, and how comments and branches record it.

In a race of two to four SOULs one wins; where the rules cannot ensure that, at most one goes on after a check.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from modules.services.claims.claiming import MOST_LOOKS, advance_claim, begin_claim
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
    PlanComment,
    PlanRead,
    PostClaim,
    ResetLine,
    Snapshot,
    UnassignSelf,
    WriteLine,
    claim_contenders,
    claim_marker,
    claims_on,
    decide_claim,
    highest_epoch,
    with_claim_until,
)
from modules.services.plans.events import build_task_event_marker
from modules.services.plans.types import Plan, Task
from tests.exploration import EXPLORE
from tests.modules.services.claims.simulated_service import killed, race

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ME = "sh-marvin"
FREE = Plan("x", tasks=(Task(3, "a"), Task(4, "b", "in_progress", "sh-d")))
MINE = Plan("x", tasks=(Task(3, "a", "claimed", "Sh-Marvin"), Task(4, "b", "in_progress", "sh-d")))


@pytest.mark.parametrize(
    ("line", "contenders", "stage", "decision"),
    [
        ("sh-marvin", [], 1, "win"),
        ("sh-marvin", ["sh-a"], 1, "wait_contest"),
        ("sh-a", [], 1, "lose"),
        ("sh-a", ["sh-a"], 1, "lose"),
        ("sh-z", [], 1, "reassert"),
        ("SH-Z", ["sh-z"], 1, "reassert"),
        ("", [], 1, "wait_propagation"),
        (None, ["sh-a"], 1, "wait_propagation"),
        ("sh-marvin", ["sh-a"], 2, "win"),
        ("sh-z", [], 2, "lose"),
        (None, [], 2, "lose"),
    ],
)
def test_the_decision(line: str | None, contenders: list[str], stage: int, decision: str) -> None:
    assert decide_claim(line, contenders, ME, 2 if stage == 2 else 1) == decision


def test_who_is_assigned_because_of_another_task_does_not_want_this_one() -> None:
    plan = Plan("x", tasks=(Task(1, "a"), Task(2, "b", "in_progress", "SH-B"), Task(3, "c", "completed", "sh-c")))
    assert claim_contenders(["Sh-B", "sh-c", "SH-Marvin", "Author"], plan, 1, ME) == ["author", "sh-c"]
    assert claim_contenders(["sh-b"], plan, 2, ME) == ["sh-b"]


def _comment(number: int, author: str, body: str, *, at: datetime = NOW) -> PlanComment:
    return PlanComment(number, author, body, at)


def test_a_claim_is_told_in_a_comment_and_renewed_in_place() -> None:
    claim = Claim(0, "sh-a", 3, 2, NOW + timedelta(minutes=10))
    body = f"I take this one.\n\n{claim_marker(claim)}\nThanks"
    read = claims_on([_comment(8, "SH-A", body)], 3)
    assert read == [Claim(8, "sh-a", 3, 2, NOW + timedelta(minutes=10))]
    longer = with_claim_until(body, 3, NOW + timedelta(minutes=20))
    assert claims_on([_comment(8, "sh-a", longer)], 3)[0].until == NOW + timedelta(minutes=20)
    assert longer.startswith("I take this one.\n\n<!-- task-claim {")
    assert longer.endswith("\nThanks")
    assert with_claim_until(body, 4, NOW) == body


def test_a_claim_never_lasts_longer_than_a_lease_from_the_last_change_of_its_comment() -> None:
    marker = claim_marker(Claim(0, "sh-a", 3, 1, NOW + timedelta(days=999)))
    (claim,) = claims_on([_comment(1, "sh-a", marker)], 3)
    assert claim.until == NOW + LEASE
    assert claim.is_live(NOW + LEASE - timedelta(seconds=1))
    assert not claim.is_live(NOW + LEASE)
    assert claim.is_live(NOW + LEASE, grace=GRACE)


@pytest.mark.parametrize(
    "body",
    [
        '<!-- task-claim {"task":3,"soul":"sh-b","epoch":1,"until":"2026-01-05T13:00:00Z"} -->',
        '<!-- task-claim {"task":3,"soul":"sh-a","epoch":-1,"until":"2026-01-05T13:00:00Z"} -->',
        '<!-- task-claim {"task":3,"soul":"sh-a","epoch":1,"until":"soon"} -->',
        "Task 12 claimed",
        "> Task 3 claimed",
        "I claim\nTask 3",
    ],
)
def test_what_is_no_claim_of_its_author(body: str) -> None:
    assert claims_on([_comment(1, "sh-a", body)], 3) == []


def test_claims_count_since_the_last_reset_and_peers_claim_in_words() -> None:
    first = claim_marker(Claim(0, "sh-a", 3, 4, NOW))
    comments = [
        _comment(5, "sh-b", f"Claimed **Task 3**.\n{build_task_event_marker(3, 'claimed', 2)}"),
        _comment(1, "sh-a", first),
        _comment(3, "sh-a", build_task_event_marker(3, "reset", 1)),
        _comment(4, "sh-c", "Claiming Task 3: mine"),
        _comment(6, "sh-c", build_task_event_marker(2, "reset", 1)),
    ]
    assert [(claim.comment_id, claim.soul, claim.until) for claim in claims_on(comments, 3)] == [
        (4, "sh-c", None),
        (5, "sh-b", None),
    ]
    assert highest_epoch(comments, 3) == 4
    assert highest_epoch([], 3) == 0


def _snapshot(
    plan: Plan | None = FREE,
    locks: Mapping[int, datetime] | None = None,
    claims: Sequence[Claim] = (),
    epoch: int = 0,
    *,
    assignees: Sequence[str] = ("sh-marvin",),
    has_pull_request: bool = False,
) -> Snapshot:
    return Snapshot(NOW, plan, tuple(assignees), locks or {}, tuple(claims), epoch, has_pull_request)


NO_LOCKS = Snapshot(NOW, FREE, ("sh-marvin",))
"""What is read where no branch can be made."""


def _drive(first: Snapshot, *events: ClaimEvent) -> tuple[ClaimState, tuple[Action, ...]]:
    state, actions = begin_claim(ME, 12, 3, first)
    for event in events:
        state, actions = advance_claim(state, event)
    return state, actions


MADE, WRITTEN = LockAnswer("created"), LineAnswer("written", 1.0)
CLAIM = Claim(0, ME, 3, 1, NOW + LEASE)


def test_who_made_the_lock_has_won_once_peers_can_see_it_and_waits_for_nothing() -> None:
    assert _drive(_snapshot())[1] == (CreateLock(1),)
    (assign, write) = _drive(_snapshot(), MADE)[1]
    assert isinstance(assign, AssignSelf)
    assert isinstance(write, WriteLine)
    assert write.expected.assignees == frozenset({"", ME})
    assert _drive(_snapshot(), MADE, WRITTEN)[1] == (PostClaim(CLAIM),)
    state, actions = _drive(_snapshot(), MADE, WRITTEN, ClaimAnswer(9))
    assert (state.stage, state.epoch, state.comment_id, actions) == ("won", 1, 9, ())


def test_where_no_branch_can_be_made_the_plan_and_the_comments_decide() -> None:
    assert isinstance(_drive(NO_LOCKS)[1][1], WriteLine)
    state, _ = _drive(_snapshot(), LockAnswer("unsupported"))
    assert (state.stage, state.has_lock) == ("writing", False)
    assert _drive(NO_LOCKS, WRITTEN)[1] == (ClaimWait(5.0), PlanRead())
    steps = (WRITTEN, PlanRead(_snapshot(MINE)))
    assert _drive(NO_LOCKS, *steps)[1] == (PostClaim(CLAIM),)
    assert _drive(NO_LOCKS, *steps, ClaimAnswer(9))[1] == (PlanRead(),)
    assert _drive(NO_LOCKS, *steps, ClaimAnswer(9), PlanRead(_snapshot(MINE)))[0].stage == "won"


def test_the_waits_are_those_of_the_protocol_and_a_slow_write_adds_to_them() -> None:
    assert _drive(NO_LOCKS, LineAnswer("written", 4.0))[1] == (ClaimWait(9.0), PlanRead())
    contested = _snapshot(MINE, assignees=("sh-marvin", "sh-z"))
    assert _drive(NO_LOCKS, WRITTEN, PlanRead(contested))[1] == (ClaimWait(3.0), PlanRead())
    theirs = _snapshot(Plan("x", tasks=(Task(3, "a", "claimed", "sh-z"),)))
    state, actions = _drive(NO_LOCKS, WRITTEN, PlanRead(theirs))
    assert isinstance(actions[0], WriteLine)
    assert actions[0].expected.assignees == frozenset({"sh-z", ME})
    assert advance_claim(state, LineAnswer("written", 3.0))[1] == (ClaimWait(6.0), PlanRead())
    assert advance_claim(state, LineAnswer("conflict"))[1] == (ClaimWait(3.0), PlanRead())
    wait, write = _drive(NO_LOCKS, WRITTEN, PlanRead(_snapshot()))[1]
    assert wait == ClaimWait(5.0)
    assert isinstance(write, WriteLine)


@pytest.mark.parametrize(
    ("snapshot", "code", "holder"),
    [
        (_snapshot(None), "not_claimable", ""),
        (_snapshot(Plan("x", tasks=(Task(3, "a", "completed"),))), "not_claimable", ""),
        (_snapshot(Plan("x", tasks=(Task(3, "a", dependencies=("Task 4",)), Task(4, "b")))), "not_claimable", ""),
        (_snapshot(Plan("x", tasks=(Task(3, "a", "claimed", "sh-z"),))), "taken", "sh-z"),
        (_snapshot(has_pull_request=True), "not_claimable", ""),
        (_snapshot(claims=[Claim(1, "sh-z", 3, 1, NOW + LEASE)], epoch=1), "taken", "sh-z"),
        (_snapshot(claims=[Claim(1, "sh-z", 3, 1, NOW - GRACE / 2)], epoch=1), "taken", "sh-z"),
        (_snapshot(locks={1: NOW - LEASE}), "lock_held", ""),
    ],
)
def test_a_task_that_is_not_to_be_had_is_left_alone(snapshot: Snapshot, code: str, holder: str) -> None:
    state, actions = _drive(snapshot)
    assert (state.stage, state.code, state.holder, actions) == ("lost", code, holder, ())


@pytest.mark.parametrize(
    ("snapshot", "epoch"),
    [
        (_snapshot(claims=[Claim(1, "sh-z", 3, 4, NOW - GRACE)], epoch=4), 5),
        (_snapshot(claims=[Claim(1, "sh-z", 3)]), 1),
        (_snapshot(locks={2: NOW - LEASE - GRACE}), 3),
        (_snapshot(locks={2: NOW}, epoch=2), 3),
        (_snapshot(MINE, claims=[Claim(1, ME, 3, 1, NOW + LEASE)], epoch=1), 2),
    ],
)
def test_what_has_ended_is_taken_up_under_the_next_epoch(snapshot: Snapshot, epoch: int) -> None:
    assert _drive(snapshot)[1] == (CreateLock(epoch),)


DONE = (WRITTEN, PlanRead(_snapshot(MINE)), ClaimAnswer(9))
UNDONE = (ResetLine, UnassignSelf)


@pytest.mark.parametrize(
    ("first", "events", "code", "kinds"),
    [
        (_snapshot(), (LockAnswer("exists"),), "lock_held", ()),
        (_snapshot(), (LockAnswer("failed"),), "failed", ()),
        (_snapshot(), (MADE, LineAnswer("conflict")), "taken", (UnassignSelf, DeleteLock)),
        (_snapshot(), (MADE, LineAnswer("failed")), "failed", (*UNDONE, DeleteLock)),
        (_snapshot(), (MADE, WRITTEN, ClaimAnswer(None)), "failed", (*UNDONE, DeleteLock)),
        (NO_LOCKS, (WRITTEN, PlanRead(None)), "failed", UNDONE),
        (
            NO_LOCKS,
            (WRITTEN, PlanRead(_snapshot(Plan("x", tasks=(Task(3, "a", "claimed", "sh-a"),))))),
            "contest",
            UNDONE,
        ),
        (NO_LOCKS, (WRITTEN, PlanRead(_snapshot(MINE, claims=[Claim(5, "sh-z", 3)]))), "earlier_claim", UNDONE),
        (NO_LOCKS, (*DONE[:-1], ClaimAnswer(None)), "failed", UNDONE),
        (
            NO_LOCKS,
            (*DONE, PlanRead(_snapshot(MINE, claims=[Claim(8, "sh-z", 3, 1, NOW + LEASE)]))),
            "earlier_claim",
            (EndClaim, *UNDONE),
        ),
        (
            NO_LOCKS,
            (*DONE, PlanRead(_snapshot(MINE, claims=[Claim(10, "sh-a", 3)]))),
            "earlier_claim",
            (EndClaim, *UNDONE),
        ),
        (
            NO_LOCKS,
            (
                *DONE,
                *(
                    PlanRead(_snapshot(Plan("x", tasks=(Task(3, "a", "claimed", "sh-z"),))))
                    for _ in range(MOST_LOOKS + 1)
                ),
            ),
            "contest",
            (EndClaim, *UNDONE),
        ),
    ],
)
def test_who_loses_steps_down_and_undoes_what_was_done(
    first: Snapshot, events: tuple[ClaimEvent, ...], code: str, kinds: tuple[type, ...]
) -> None:
    state, actions = _drive(first, *events)
    assert (state.stage, state.code) == ("lost", code)
    assert tuple(type(action) for action in actions) == kinds
    assert all(action.expected.assignees == frozenset({ME}) for action in actions if isinstance(action, ResetLine))


@pytest.mark.parametrize(
    "claims", [[Claim(10, "sh-z", 3)], [Claim(10, "sh-a", 3, 1, NOW + LEASE)], [Claim(5, "sh-z", 3, 1, NOW)]]
)
def test_a_later_claim_of_a_higher_name_and_one_that_has_ended_take_nothing_away(claims: list[Claim]) -> None:
    assert _drive(NO_LOCKS, *DONE, PlanRead(_snapshot(MINE, claims=claims)))[0].stage == "won"


def test_who_works_on_another_task_of_the_plan_stays_assigned() -> None:
    plan = Plan("x", tasks=(Task(3, "a"), Task(4, "b", "in_progress", "SH-marvin")))
    _, actions = _drive(_snapshot(plan), MADE, LineAnswer("failed"))
    assert [type(action) for action in actions] == [ResetLine, DeleteLock]


def test_a_claimant_without_a_lock_waits_for_its_own_write_to_show() -> None:
    events: list[ClaimEvent] = [WRITTEN, PlanRead(_snapshot())]
    for _ in range(MOST_LOOKS):
        events += [WRITTEN, PlanRead(_snapshot())]
        wait, write = _drive(NO_LOCKS, *events)[1]
        assert (wait, type(write)) == (ClaimWait(5.0), WriteLine)
    assert _drive(NO_LOCKS, *events, WRITTEN, PlanRead(_snapshot(MINE)))[0].stage == "claiming"
    assert _drive(NO_LOCKS, *events, WRITTEN, PlanRead(_snapshot()))[0].code == "contest"
    (write, wait, read) = _drive(NO_LOCKS, *DONE, PlanRead(_snapshot()))[1]
    assert isinstance(write, WriteLine)
    assert (wait, read) == (ClaimWait(3.0), PlanRead())
    theirs = PlanRead(_snapshot(Plan("x", tasks=(Task(3, "a", "claimed", "sh-z"),))))
    assert _drive(NO_LOCKS, *DONE, theirs)[1] == (ClaimWait(5.0), PlanRead())


RACES = 250 * max(1, EXPLORE)
ONE_WINNER: Mapping[str, Mapping[str, Any]] = {
    "answers within 2 s": {"most_s": 2},
    "answers within 30 s": {"most_s": 30},
    "within 2 s, reading up to 8 s late": {"most_s": 2, "stale_s": 8},
    "no branches to lock with, within 2 s": {"most_s": 2, "has_locks": False},
    "one without the lock, within 2 s": {"most_s": 2, "lockless": 1},
}
AT_MOST_ONE_GOES_ON: Mapping[str, Mapping[str, Any]] = {
    "no branches to lock with, within 10 s": {"most_s": 10, "has_locks": False},
    "no branches, reading up to 8 s late": {"most_s": 2, "has_locks": False, "stale_s": 8},
    "one without the lock, within 10 s": {"most_s": 10, "lockless": 1},
    "a peer of the older protocol, within 2 s": {"most_s": 2, "older": 1},
    "a peer of the older protocol, within 30 s": {"most_s": 30, "older": 1},
    "such a peer, reading up to 8 s late": {"most_s": 2, "older": 1, "stale_s": 8},
}


def _seeds() -> range:
    start = EXPLORE * 1_000_000
    return range(start, start + RACES)


@pytest.mark.parametrize("case", ONE_WINNER)
def test_a_race_has_one_winner(case: str) -> None:
    for seed in _seeds():
        found = race(seed, **ONE_WINNER[case])
        assert len(found.winners) == 1, (seed, found)
        assert found.later == found.winners, (seed, found)
        assert found.line == found.winners[0], (seed, found)


@pytest.mark.parametrize("case", AT_MOST_ONE_GOES_ON)
def test_no_two_go_on_where_there_may_be_no_winner(case: str) -> None:
    for seed in _seeds():
        found = race(seed, **AT_MOST_ONE_GOES_ON[case])
        assert len(found.later) <= 1, (seed, found)


def test_a_task_of_a_soul_that_was_killed_is_taken_up_again_and_never_by_two() -> None:
    for seed in _seeds():
        found = killed(seed)
        assert found.line == "sh-c", (seed, found)
        assert found.winners in {("sh-c",), ("sh-a", "sh-c"), ("sh-b", "sh-c")}, (seed, found)
