"""Only what the words of a request ask for and no task covers becomes a task, and a plan keeps every byte it had."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from modules.services.plans.missing import MOST_ADDED, read_missing, words_left
from modules.services.plans.plan_text import MOST_BODY_CHARS, add_tasks_to_plan_body, parse_plan
from modules.services.plans.types import Plan, Task
from tests.exploration import examples
from tests.modules.services.plans.hand_edits import EditedPlan, edited_plans
from tests.modules.services.plans.plan_values import BODY

WANTED = (
    "@maren.test I would like a tide table: it reads the tides from a file, prints the next high water, and warns of"
    " spring tides. Please make a workspace and write a plan."
)
PLAN = Plan(
    "Tides",
    tasks=(
        Task(1, "Read the tides", description="From a file, line by line."),
        Task(2, "Print high water", description="The next one comes first."),
    ),
)
WARNS = {"asked": "warns of spring tides", "title": "Warn of spring tides", "description": "In red."}
TASK = Task(7, "Sort\nthe table", files=("sort.ts",), description="By date.\n\n## Verification\n- [ ] mine")


def added(*named: object) -> list[str]:
    return [one.task.title for one in read_missing({"missing": list(named)}, PLAN, WANTED)]


def test_what_no_task_covers_is_a_task_and_only_once() -> None:
    again = {"asked": "spring tides", "title": "Spring tides", "description": "warns of spring tides"}
    assert added(WARNS, WARNS, again) == ["Warn of spring tides"]


@pytest.mark.parametrize(
    "named",
    [
        {**WARNS, "asked": "warn of spring tides"},
        {**WARNS, "asked": "spring"},
        {**WARNS, "asked": ["warns of spring tides"]},
        {**WARNS, "title": ""},
        {**WARNS, "title": "read the TIDES!"},
        {**WARNS, "asked": "prints the next high water"},
        "warns of spring tides",
        None,
    ],
)
def test_what_was_not_asked_for_or_stands_in_a_task_is_left_out(named: object) -> None:
    assert added(named) == []


def test_the_words_that_stand_in_no_task_are_told_once_and_without_names() -> None:
    left = words_left(PLAN, WANTED)
    assert ("spring" in left, left.count("warns"), "maren" in left) == (True, 1, False)
    assert not {"reads", "file", "high", "water"} & set(left)
    all_words = Task(3, WANTED.partition(" ")[2])
    assert words_left(Plan("x", tasks=(*PLAN.tasks, all_words)), WANTED) == []


@pytest.mark.parametrize("given", [{}, {"missing": "x"}])
def test_a_judgement_without_a_list_finds_nothing(given: dict[str, object]) -> None:
    assert read_missing(given, PLAN, WANTED) == ()


def test_no_more_is_added_than_a_request_may_bring() -> None:
    words = [f"thing{one} number{one}" for one in range(40)]
    named = [{"asked": one, "title": f"Do {one}", "description": "x"} for one in words]
    assert len(read_missing({"missing": named}, PLAN, ", ".join(words))) == MOST_ADDED


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_task_stands_behind_the_others_and_before_the_checks(end: str) -> None:
    body = BODY.replace("\n", end)
    changed = add_tasks_to_plan_body(body, "[PLAN] x", [Task(4, "Sort the table", description="By date.")])
    assert changed is not None
    place = body.index("## Verification")
    assert changed.startswith(body[:place])
    assert changed.endswith(body[place:])
    task = changed[place : len(changed) - len(body[place:])]
    assert task.startswith(f"### Task 4: Sort the table{end}**Status:** pending{end}")
    assert task.endswith(f"By date.{end}{end}---{end}{end}")


@pytest.mark.parametrize(
    ("tail", "between"),
    [("text", "\n\n---\n\n"), ("text\n\n", "\n---\n\n"), ("text\n---\n", "\n"), ("", "\n\n---\n\n")],
)
def test_a_plan_that_ends_with_its_tasks_gets_a_rule_before_the_next(tail: str, between: str) -> None:
    body = f"# [PLAN] x\n\n## Tasks\n\n### Task 1: a\n{tail}"
    if not tail:
        body = body.rstrip("\n")
    changed = add_tasks_to_plan_body(body, "x", [Task(2, "b")])
    assert changed is not None
    assert changed.startswith(f"{body}{between}### Task 2: b\n")


@pytest.mark.parametrize(
    "body",
    [
        "no plan",
        "# [PLAN] x\n\n## Goal\nWithout tasks",
        "# [PLAN] x\n\n## Tasks\n\n### Task 999999999: a\n",
        f"# [PLAN] x\n\n## Tasks\n\n### Task 7: a\n{'b' * MOST_BODY_CHARS}",
    ],
)
def test_a_body_in_which_a_task_would_not_be_read_stays_as_it_is(body: str) -> None:
    assert add_tasks_to_plan_body(body, "x", [TASK]) is None


@settings(max_examples=examples(200), deadline=None)
@given(edited_plans())
@pytest.mark.slow
def test_what_people_wrote_into_a_plan_stays_to_the_byte(edited: EditedPlan) -> None:
    body = edited.body
    before = parse_plan(body, "[PLAN] x")
    number = max((task.number for task in before.tasks), default=0) + 1 if before else 1
    changed = add_tasks_to_plan_body(body, "[PLAN] x", [Task(number, "Sort the table", description="By date.")])
    if changed is None:
        return
    after = parse_plan(changed, "[PLAN] x")
    assert before is not None
    assert after is not None
    assert after.tasks[:-1] == before.tasks
    assert after.tasks[-1].title == "Sort the table"
    cuts = range(len(body) + 1)
    assert any(changed.startswith(body[:cut]) and changed.endswith(body[cut:]) for cut in cuts)
