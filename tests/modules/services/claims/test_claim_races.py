"""Races of two to four SOULs for one task: one wins, and where the rules cannot hold, nobody goes on unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.exploration import EXPLORE
from tests.modules.services.claims.simulated_service import killed, race

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
