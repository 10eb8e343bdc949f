"""Which tasks may be taken up, which pages a plan makes first, and by which names a task is known."""

from __future__ import annotations

import pytest

from modules.services.plans.compose import PlanWords, plan_words
from modules.services.plans.types import (
    Plan,
    PlanLabel,
    Task,
    ensure_docs_tasks,
    get_claimable_tasks,
    get_task_branch_candidates,
    get_task_branch_name,
    has_docs_tasks,
    parse_task_branch,
    plan_labels,
)
from modules.services.skills.skills import Skills
from tests.project import ROOT


@pytest.fixture(scope="module")
def words() -> PlanWords:
    return plan_words(Skills.load(ROOT / "skills"), "acme/www-lil-intdev-shop")


def test_a_task_may_be_taken_up_that_nobody_has_and_that_waits_for_nothing() -> None:
    plan = Plan(
        "x",
        tasks=(
            Task(1, "done", "completed"),
            Task(2, "waits for what is done", dependencies=("Task 1",)),
            Task(3, "waits", dependencies=("Task 1", "Task 2")),
            Task(4, "is somebody's", "claimed", "sh-marvin"),
            Task(5, "is nobody's, whatever it says", "in_progress"),
            Task(6, "failed once", "blocked"),
            Task(7, "was given before it began", assignee="sh-marvin"),
        ),
    )
    assert [task.number for task in get_claimable_tasks(plan)] == [2, 5, 6]


@pytest.mark.parametrize(
    ("labels", "status", "expected"),
    [
        ((), "active", ("plan", "plan:active")),
        (("plan", "plan:active"), "complete", ("plan", "plan:complete")),
        (("urgent", "plan:blocked", "plan", "Plan:Active"), "active", ("urgent", "plan", "plan:active")),
        (("plan", "planning", "plan:b"), "superseded", ("plan", "planning", "plan:b", "plan:superseded")),
    ],
)
def test_the_labels_of_people_stay(labels: tuple[str, ...], status: PlanLabel, expected: tuple[str, ...]) -> None:
    assert plan_labels(labels, status) == expected


def test_the_pages_come_first_and_the_others_wait_for_the_same_tasks_as_before(words: PlanWords) -> None:
    tasks = (
        Task(0, "Parse"),
        Task(0, "Draw", dependencies=("Task 1",)),
        Task(0, "Ship", dependencies=("draw",)),
        Task(0, "Tell"),
    )
    plan = ensure_docs_tasks(Plan("x", tasks=tasks), words.docs)
    assert [(task.number, task.title, task.dependencies, task.files) for task in plan.tasks] == [
        (1, "Create LIL-INTDEV-AGENTS.md", (), ("LIL-INTDEV-AGENTS.md",)),
        (2, "Create SCENARIOS.md", (), ("SCENARIOS.md",)),
        (3, "Parse", (), ()),
        (4, "Draw", ("Task 3",), ()),
        (5, "Ship", ("Task 4",), ()),
        (6, "Tell", (), ()),
    ]
    assert plan.tasks[0].estimate == "5-10 min"
    assert "acme/www-lil-intdev-shop" in plan.tasks[0].description
    assert ensure_docs_tasks(plan, words.docs) == plan
    assert len(words.verification) == 3
    small = Plan("x", tasks=tasks[:3])
    assert ensure_docs_tasks(small, words.docs) == small


@pytest.mark.parametrize(
    ("agents", "scenarios", "titles"),
    [(False, True, ["Create LIL-INTDEV-AGENTS.md", *"abcd"]), (True, True, [*"abcd"])],
)
def test_a_page_that_is_there_is_not_made(
    words: PlanWords, *, agents: bool, scenarios: bool, titles: list[str]
) -> None:
    four = Plan("x", tasks=tuple(Task(number, title) for number, title in enumerate("abcd", 1)))
    plan = ensure_docs_tasks(four, words.docs, skip_agents_md=agents, skip_scenarios_md=scenarios)
    assert [task.title for task in plan.tasks] == titles


@pytest.mark.parametrize(
    ("task", "agents", "scenarios"),
    [
        (Task(1, "Docs", files=("LIL-INTDEV-AGENTS.md", "docs/scenarios.md")), True, True),
        (Task(1, "Create LIL-INTDEV-AGENTS.md and SCENARIOS.md"), True, True),
        (Task(1, "Update the LIL-INTDEV-AGENTS page"), True, False),
        (Task(1, "Create scenarios for the login"), False, False),
        (Task(1, "Parse", description="As LIL-INTDEV-AGENTS.md and SCENARIOS.md say"), False, False),
    ],
)
def test_a_page_counts_that_a_task_makes_not_one_that_it_mentions(task: Task, *, agents: bool, scenarios: bool) -> None:
    found = has_docs_tasks([task])
    assert (found.has_agents_md, found.has_scenarios_md) == (agents, scenarios)


@pytest.mark.parametrize(
    ("number", "title", "candidates"),
    [
        (1, "Create LIL-INTDEV-AGENTS.md", ["task-1-create-lil-intdev-agentsmd", "task-1-create-lil-intdev-agents-md"]),
        (
            12,
            "Implement the strict query parser for portfolio comparison URLs",
            ["task-12-implement-the-strict-query-parser-for", "task-12-implement-the-strict-query-parser-for-po"],
        ),
        (
            3,
            "Supercalifragilisticexpialidociousandsomemorecharactersforlength",
            ["task-3-supercalifragilisticexpialidociousandsomemo", "task-3-supercalifragilisticexpialidociousandsom"],
        ),
        (2, "Fix & ship: colour/size", ["task-2-fix-and-ship-colour-size", "task-2-fix-ship-colour-size"]),
        (4, "✨", ["task-4-untitled", "task-4-"]),
    ],
)
def test_the_branches_of_a_task(number: int, title: str, candidates: list[str]) -> None:
    assert get_task_branch_candidates(number, title) == candidates
    assert get_task_branch_name(number, title) == candidates[0]
    assert [parse_task_branch(one) for one in candidates] == [number] * len(candidates)


@pytest.mark.parametrize(
    ("ref", "number"),
    [("refs/heads/task-12-x", 12), ("task-12", None), ("main", None), ("my/task-1-x", None), ("task-1x-y", None)],
)
def test_the_task_of_a_branch(ref: str, number: int | None) -> None:
    assert parse_task_branch(ref) == number
