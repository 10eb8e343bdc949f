"""Races of two to four SOULs for one task: one wins, and where the rules cannot hold, nobody goes on unnoticed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.exploration import EXPLORE, examples
from tests.modules.services.plans.simulated_service import killed, race

FEW, MANY = 250, int(os.environ.get("PLAN_RACES", "40000"))
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


def _seeds(count: int) -> range:
    start = EXPLORE * 1_000_000
    return range(start, start + count)


def _assert_one_winner(count: int, told: Mapping[str, Any]) -> None:
    for seed in _seeds(count):
        found = race(seed, **told)
        assert len(found.winners) == 1, (seed, found)
        assert found.later == found.winners, (seed, found)
        assert found.line == found.winners[0], (seed, found)


def _at_most_one(count: int, told: Mapping[str, Any]) -> Counter[tuple[int, int]]:
    """Return how many races had so many winners at first, and so many after each had looked again."""
    counted: Counter[tuple[int, int]] = Counter()
    for seed in _seeds(count):
        found = race(seed, **told)
        assert len(found.later) <= 1, (seed, found)
        counted[len(found.winners), len(found.later)] += 1
    return counted


@pytest.mark.parametrize("case", ONE_WINNER)
def test_a_race_has_one_winner(case: str) -> None:
    _assert_one_winner(examples(FEW), ONE_WINNER[case])


@pytest.mark.parametrize("case", AT_MOST_ONE_GOES_ON)
def test_no_two_go_on_where_there_may_be_no_winner(case: str) -> None:
    _at_most_one(examples(FEW), AT_MOST_ONE_GOES_ON[case])


def _assert_taken_up_again(count: int) -> None:
    for seed in _seeds(count):
        found = killed(seed)
        assert found.line == "sh-c", (seed, found)
        assert found.winners in {("sh-c",), ("sh-a", "sh-c"), ("sh-b", "sh-c")}, (seed, found)


def test_a_task_of_a_soul_that_was_killed_is_taken_up_again_and_never_by_two() -> None:
    _assert_taken_up_again(examples(FEW))


@pytest.mark.slow
def test_many_kills_leave_no_task_behind() -> None:
    _assert_taken_up_again(MANY)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", ONE_WINNER)
def test_many_races_have_one_winner_each(case: str) -> None:
    _assert_one_winner(MANY, ONE_WINNER[case])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("case", AT_MOST_ONE_GOES_ON)
def test_in_many_races_no_two_go_on(case: str) -> None:
    counted = _at_most_one(MANY, AT_MOST_ONE_GOES_ON[case])
    told = ", ".join(f"{won} won and {later} went on: {count}" for (won, later), count in sorted(counted.items()))
    print(f"\n{case}: {told}")  # noqa: T201 - the figures are what `make test-plans` is for
