"""When a plan is looked for in a workspace, and when it is judged whether there is more to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from common.clock import FakeClock, parse_iso
from modules.services.workspaces.due import (
    HEALTH_CHECK_COOLDOWN,
    PLAN_SYNTHESIS_COOLDOWN,
    get_workspaces_needing_plan_synthesis,
    is_health_check_due,
)
from modules.services.workspaces.watched import WatchedWorkspace

NOW = parse_iso("2026-03-02T10:00:00.000Z")
SECOND = timedelta(seconds=1)
SINCE = FakeClock(NOW).since


def workspace(name: str = "site", **more: Any) -> WatchedWorkspace:
    fields: dict[str, Any] = {"owner": "acme", "repo": name, "url": "u", "discovered_at": NOW - timedelta(days=9)}
    return WatchedWorkspace(**fields | {"last_polled": NOW} | more)


@pytest.mark.parametrize(
    ("more", "due"),
    [
        ({}, True),
        ({"last_polled": None}, False),
        ({"active_plan_issues": (3, 4)}, True),
        ({"active_plan_issues": (3, 4, 5)}, False),
        ({"finished_issue_number": 4}, False),
        ({"last_plan_synthesis_attempt": NOW - PLAN_SYNTHESIS_COOLDOWN}, True),
        ({"last_plan_synthesis_attempt": NOW - PLAN_SYNTHESIS_COOLDOWN + SECOND}, False),
    ],
)
def test_a_plan_is_looked_for_where_few_are_open_and_it_is_time(more: dict[str, Any], *, due: bool) -> None:
    one = workspace(**more)
    assert get_workspaces_needing_plan_synthesis([one], SINCE) == ([one] if due else [])


def test_the_workspace_that_was_looked_at_longest_ago_comes_first() -> None:
    days = {"late": 1, "early": 3}
    never = workspace("never")
    tried = [workspace(name, last_plan_synthesis_attempt=NOW - timedelta(days=ago)) for name, ago in days.items()]
    assert get_workspaces_needing_plan_synthesis([*tried, never], SINCE) == [never, tried[1], tried[0]]


@pytest.mark.parametrize(
    ("last", "completed", "due"),
    [
        (None, None, True),
        (HEALTH_CHECK_COOLDOWN, None, True),
        (HEALTH_CHECK_COOLDOWN - SECOND, None, False),
        (timedelta(hours=2), timedelta(hours=3), False),
        (timedelta(hours=2), timedelta(hours=1), True),
    ],
)
def test_work_is_judged_once_a_day_and_after_a_plan(
    last: timedelta | None, completed: timedelta | None, *, due: bool
) -> None:
    one = workspace(last_health_check_attempt=NOW - last if last else None)
    assert is_health_check_due(one, SINCE, NOW - completed if completed else None) is due
