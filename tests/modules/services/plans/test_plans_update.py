"""A task of a plan is changed, and no other byte of its body."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from modules.services.plans.plan_text import parse_plan
from modules.services.plans.types import UNDONE_TASKS, Expected, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.exploration import examples
from tests.modules.services.plans.hand_edits import EditedPlan, assert_nothing_is_lost, changes, edited_plans
from tests.modules.services.plans.plan_values import BODY

CLAIM = TaskChange("claimed", "sh-marvin")


def _task(lines: str) -> str:
    return f"# [PLAN] x\n\n## Tasks\n\n### Task 1: a\n{lines}"


def test_a_claim_changes_two_lines_and_nothing_else() -> None:
    found = update_task_in_plan_body(BODY, 2, CLAIM)
    assert found.code == "changed"
    old, new = BODY.split("\n"), found.body.split("\n")
    assert [(a, b) for a, b in zip(old, new, strict=True) if a != b] == [
        ("**Status:** pending", "**Status:** claimed"),
        ("**Assignee:** (empty if unclaimed)", "**Assignee:** @sh-marvin"),
    ]
    plan = parse_plan(found.body, "[PLAN] x")
    assert plan is not None
    task = plan.task(2)
    assert task is not None
    assert (task.status, task.assignee) == ("claimed", "sh-marvin")


def test_a_release_gives_back_the_same_bytes() -> None:
    claimed = update_task_in_plan_body(BODY, 2, CLAIM).body
    assert update_task_in_plan_body(claimed, 2, TaskChange("pending", "")).body == BODY


@pytest.mark.parametrize(
    ("lines", "changed"),
    [
        ("", "**Status:** claimed\n**Assignee:** @sh-marvin"),
        ("text", "**Status:** claimed\n**Assignee:** @sh-marvin\ntext"),
        ("**Status:** todo\r\ntext", "**Status:** claimed\r\n**Assignee:** @sh-marvin\r\ntext"),
        ("text\n**Status:** pending", "**Status:** claimed\n**Assignee:** @sh-marvin\ntext\n**Status:** pending"),
        ("- **Status**: In Progress\n- **Assignee**: TBD", "- **Status**: claimed\n- **Assignee**: @sh-marvin"),
        (
            "**Status:** blocked (by Anna)\n**Assignee:** @bob until Friday",
            "**Status:** claimed (by Anna)\n**Assignee:** @sh-marvin (until Friday)",
        ),
        (
            "**Status:** after lunch\n**Assignee:** <!-- ask Bob -->",
            "**Status:** claimed (after lunch)\n**Assignee:** @sh-marvin <!-- ask Bob -->",
        ),
        (
            "```\n**Status:** pending\n```",
            "**Status:** claimed\n**Assignee:** @sh-marvin\n```\n**Status:** pending\n```",
        ),
    ],
)
def test_lines_that_people_wrote_or_left_out(lines: str, changed: str) -> None:
    body = _task(lines)
    expected = _task(changed)
    if not lines:
        body, expected = body.rstrip("\n"), expected.rstrip("\n")
    if lines.startswith("**Status:** todo"):
        body, expected = body.replace("a\n", "a\r\n"), expected.replace("a\n", "a\r\n")
    assert update_task_in_plan_body(body, 1, CLAIM).body == expected


def test_a_task_that_is_not_there_and_one_that_says_so_already() -> None:
    assert update_task_in_plan_body(BODY, 9, CLAIM).code == "missing"
    claimed = update_task_in_plan_body(BODY, 2, CLAIM).body
    assert update_task_in_plan_body(claimed, 2, CLAIM) == update_task_in_plan_body(claimed, 2, TaskChange())
    assert update_task_in_plan_body(claimed, 2, CLAIM).code == "same"


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        (Expected(frozenset({""})), "conflict"),
        (Expected(frozenset({"", "SH-Rebecca"})), "changed"),
        (Expected(statuses=frozenset({"in_progress"})), "changed"),
        (Expected(frozenset({"sh-rebecca"}), frozenset({"claimed"})), "conflict"),
    ],
)
def test_a_task_is_changed_only_where_it_is_as_expected(expected: Expected, code: str) -> None:
    found = update_task_in_plan_body(BODY, 3, TaskChange("blocked", ""), expected)
    assert found.code == code
    assert (found.body == BODY) == (code == "conflict")


@pytest.mark.parametrize("lines", ["**Status:** cancelled", "**Status:** pending\n**Assignee:** 太郎"])
def test_what_cannot_be_read_is_as_nobody_expects_it(lines: str) -> None:
    body = _task(lines)
    free = Expected(frozenset({"", "sh-marvin"}), UNDONE_TASKS)
    assert update_task_in_plan_body(body, 1, CLAIM, free).code == "conflict"


@given(edited_plans(), changes)
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_what_a_person_wrote_stays(edited: EditedPlan, change: TaskChange) -> None:
    assert_nothing_is_lost(edited, change)
