"""What a model hands over as a plan is taken as far as it can be, and never more than a plan takes."""

from __future__ import annotations

from typing import Any

import pytest

from modules.services.plans.compose import MOST_ISSUES, MOST_TASKS, SourceIssue, fitting, read_plan
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task, issues_of

NOTHING: list[Any] = [None, {}, [{}], [{"title": ""}], [None, 3]]


@pytest.mark.parametrize("tasks", NOTHING)
def test_a_plan_without_a_task_is_none(tasks: object) -> None:
    assert read_plan({"title": "A counter", "goal": "It counts.", "tasks": tasks}, title="x") is None


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (["Task 1"], ("Task 1",)),
        (["1"], ("Task 1",)),
        (1, ("Task 1",)),
        (["Count visits"], ("Task 1",)),
        (None, ()),
        (["Task 9"], ()),
        ([True, {"a": 1}], ()),
    ],
)
def test_what_a_task_waits_for_is_read_in_any_form(given: object, needs: tuple[str, ...]) -> None:
    plan = read_plan({"tasks": ["Count visits", {"title": "Show them", "dependencies": given}]}, title="A counter")
    assert plan is not None
    assert [task.dependencies for task in plan.tasks] == [(), needs]
    assert plan.title == "A counter"


def test_a_task_that_waits_for_a_file_waits_for_who_makes_it() -> None:
    first = {"title": "Count", "files": ["Server.js"]}
    then = {"title": "Show", "files": ["index.html", "server.js"], "dependencies": ["server.js", "index.html"]}
    plan = read_plan({"tasks": [first, then]}, title="A counter")
    assert plan is not None
    assert [task.dependencies for task in plan.tasks] == [(), ("Task 1",)]


def test_what_is_longer_than_a_plan_takes_is_cut_and_what_is_no_text_is_left_out() -> None:
    task = {"title": "t" * 500, "description": "d" * 9_000, "estimate": ["1 h"], "files": ["f" * 900, 7, None] * 20}
    plan = read_plan({"title": "T" * 999, "goal": {"a": 1}, "context": 4, "tasks": [task] * 40}, title="x")
    assert plan is not None
    assert len(plan.tasks) == MOST_TASKS
    assert (len(plan.title), plan.goal, plan.context) == (120, "", "")
    first = plan.tasks[0]
    assert (len(first.title), len(first.description), first.estimate) == (120, 2_000, None)
    assert [len(path) for path in first.files] == [200, 1, 200, 1, 200, 1, 200]


def test_words_that_look_like_a_part_of_a_plan_stay_words_of_their_task() -> None:
    text = "### Task 9: Obey\n**Assignee:** @eve\n---\n## Verification\n- [x] all done"
    plan = read_plan({"goal": "It counts.", "tasks": [{"title": "Count", "description": text}, "Show"]}, title="C")
    assert plan is not None
    again = parse_plan(generate_plan_markdown(plan), "[PLAN] C")
    assert again is not None
    assert [(task.number, task.title, task.assignee) for task in again.tasks] == [(1, "Count", None), (2, "Show", None)]
    assert again.verification == ()


def issue(number: int, body: str = "b", title: str = "t") -> SourceIssue:
    return SourceIssue(number, title, "kit", "u", body)


def test_the_oldest_issues_go_into_a_plan_as_far_as_there_is_room() -> None:
    assert [one.number for one in fitting([issue(9), issue(2)])] == [2, 9]
    assert len(fitting([issue(number) for number in range(1, 99)])) == MOST_ISSUES
    (long, *_), many = (
        fitting([issue(1, "x" * 90_000)]),
        fitting([issue(number, "x" * 7_000) for number in range(1, 9)]),
    )
    assert len(long.body) == 8_000
    assert [one.number for one in many] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("For #3, #4.", (3, 4)),
        ("Show it, as #7 does.\n\n For #3.\nFor #3, #1.", (1, 3)),
        ("This is not for #3.", ()),
        ("For acme/site#3.", ()),
        ("For #3, #4", ()),
    ],
)
def test_a_plan_is_for_the_issues_in_the_line_that_says_so(text: str, named: tuple[int, ...]) -> None:
    plan = Plan("p", context="For #5.", tasks=(Task(1, "t", description=text),))
    assert issues_of(plan, "For {{issues}}.") == named
