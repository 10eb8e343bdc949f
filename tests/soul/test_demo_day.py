"""Watching the demo for a day: there is always something new, and each resident's budget lasts.

`DEMO_HOURS` is how much of the day is lived; with less than all of it the rest is reckoned by twice its dearest hour.
"""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from soul.commands.demo import TOKENS_PER_DAY
from tests.soul.demo_day import HOUR_S, Record, live_a_day

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

HOURS = int(os.environ.get("DEMO_HOURS", "1"))
FIRST_MINUTES_S = 300.0
LONGEST_QUIET_S = 40.0
LONGEST_QUIET_IN_THE_ROOM_S = 200.0
MOST_OF_THE_BUDGET = 0.7
"""From here on a SOUL becomes thrifty."""
HANDLES = ("maren.test", "tobias.test", "odile.test")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return live_a_day(tmp_path_factory.mktemp("demo"), until_s=HOURS * HOUR_S)


def longest_quiet_s(moments: list[float]) -> float:
    return max(after - before for before, after in pairwise(moments))


def test_the_first_minutes_show_something_new_every_forty_seconds(day: Record) -> None:
    moments = [at for at, _ in day.posts if at < FIRST_MINUTES_S]
    assert longest_quiet_s([0.0, *moments, FIRST_MINUTES_S]) < LONGEST_QUIET_S


def test_all_residents_have_a_share_of_the_first_minutes(day: Record) -> None:
    by = [handle for at, handle in day.posts if at < FIRST_MINUTES_S]
    assert min(by.count(handle) for handle in HANDLES) > 0.15 * len(by)


def test_the_square_is_as_lively_later(day: Record) -> None:
    per_hour = [sum(hour <= at / HOUR_S < hour + 1 for at, _ in day.posts) for hour in range(HOURS)]
    assert min(per_hour) > 0.8 * per_hour[0], per_hour


def test_somebody_says_a_line_in_the_room_every_few_minutes(day: Record) -> None:
    assert longest_quiet_s([0.0, *day.said, HOURS * HOUR_S]) < LONGEST_QUIET_IN_THE_ROOM_S


def test_the_budget_of_each_resident_lasts_for_a_whole_day(day: Record) -> None:
    assert len(day.tokens) == len(HANDLES)
    for name, hours in day.tokens.items():
        reckoned = sum(hours.values()) + (24 - HOURS) * 2 * max(hours.values())
        assert reckoned < MOST_OF_THE_BUDGET * TOKENS_PER_DAY, (name, dict(hours))
    assert day.troubles == []
