"""A plan is read whatever hands went over it, and no text makes that slow."""

from __future__ import annotations

import pytest

from modules.services.plans.fields import read_assignee, read_status
from modules.services.plans.parse import parse_plan
from modules.services.plans.types import Plan, Task, TaskStatus
from tests.cpu_time import takes_less
from tests.modules.services.plans.plan_values import BODY, PLAN

TITLES = ("Set up the database", "Import prices, weekly", "Draw the chart")


def _plan(tasks: str, title: str = "[PLAN] x") -> Plan:
    plan = parse_plan(f"# [PLAN] x\n\n## Tasks\n\n{tasks}", title)
    assert plan is not None
    return plan


def _needs(text: str, number: int = 4) -> tuple[tuple[str, ...], int]:
    """What the task of that number waits for, and how many warnings there are."""
    headings = [f"### Task {place}: {title}" for place, title in enumerate((*TITLES, "Write it up"), 1)]
    headings[number - 1] += f"\n**Dependencies:** {text}"
    plan = _plan("\n\n".join(headings))
    task = plan.task(number)
    assert task is not None
    return task.dependencies, len(plan.warnings)


@pytest.mark.parametrize("body", ["", " \n", "## Goal\nx"])
def test_what_is_no_plan(body: str) -> None:
    assert parse_plan(body, "An issue") is None


def test_a_plan_is_known_by_its_title_or_its_body() -> None:
    assert parse_plan("text", "[PLAN] The [PLAN] of it") == Plan("The [PLAN] of it")
    assert parse_plan("# [PLAN] Of the body\n## Goal\na\n\n b", "") == Plan("Of the body", "a b")


def test_line_ends_of_another_system_change_nothing() -> None:
    assert parse_plan(BODY.replace("\n", "\r\n"), "[PLAN] Portfolio comparison") == PLAN


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("pending", "pending"),
        ("In Progress", "in_progress"),
        ("in-progress", "in_progress"),
        ("WIP", "in_progress"),
        ("**done**", "completed"),
        ("complete", "completed"),
        ("✅", "completed"),
        ("done ✅", "completed"),
        ("done, see #5", "completed"),
        ("completed (by Anna)", "completed"),
        ("todo", "pending"),
        ("Open", "pending"),
        ("unclaimed", "pending"),
        ("`blocked`", "blocked"),
        ("complete rewrite needed", None),
        ("undone", None),
        ("after lunch", None),
        ("", None),
    ],
)
def test_a_status_in_the_words_of_people(text: str, status: str | None) -> None:
    assert read_status(text) == status


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("@sh-marvin", "sh-marvin"),
        ("sh-marvin", "sh-marvin"),
        ("**@sh-marvin**", "sh-marvin"),
        ("[@anna](https://github.com/anna)", "anna"),
        ("anna, bob", "anna"),
        ("currently @bob", "bob"),
        ("@anna (until Friday)", "anna"),
        ("acme_anna", "acme_anna"),
        *((text, None) for text in ("", "(empty if unclaimed)", "none", "None.", "_unassigned_", "n/a", "TBD", "-")),
        *((text, None) for text in ("(unassigned)", "none yet", "(ask @bob)", "<!-- @bob -->", "Ünal", "-x")),
    ],
)
def test_an_assignee_in_the_words_of_people(text: str, login: str | None) -> None:
    assert read_assignee(text) == login


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        *((text, ()) for text in ("none", "None.", "none (foundational)", "n/a", "-", "")),
        ("Task 1, Task 3", (1, 3)),
        ("task-1", (1,)),
        ("3", (3,)),
        ("Task 1 and Task 2", (1, 2)),
        ("Task 3; Task 2 & task 1", (3, 2, 1)),
        ("Tasks 1-3", (1, 2, 3)),
        ("Tasks 1 to 3", (1, 2, 3)),
        ("1\u20132", (1, 2)),
        ("Tasks 1, 2 and 3", (1, 2, 3)),
        ("Task 2 (the import)", (2,)),
        ("set up the DATABASE", (1,)),
        ("Import prices, weekly", (2,)),
        ("the chart", (3,)),
        ("Draw the chart; Set up the database", (3, 1)),
        ("Set up the database in PostgreSQL", (1,)),
        ("Task 1, Task 1", (1,)),
    ],
)
def test_dependencies_in_the_words_of_people(text: str, needs: tuple[int, ...]) -> None:
    assert _needs(text) == (tuple(f"Task {number}" for number in needs), 0)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("Task 9", ()),
        ("Task 4", ()),
        ("Task 1, Task 9", (1,)),
        ("Tasks 2-7", (2, 3)),
        ("the board's blessing", ()),
        ("Task 12", ()),
    ],
)
def test_what_would_block_a_task_for_ever_is_dropped_with_a_warning(text: str, needs: tuple[int, ...]) -> None:
    assert _needs(text)[0] == tuple(f"Task {number}" for number in needs)
    assert _needs(text)[1] > 0


def test_tasks_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    plan = _plan(
        "### Task 1: a\n**Dependencies:** Task 3\n### Task 2: b\n**Dependencies:** Task 1\n"
        "### Task 3: c\n**Dependencies:** Task 2, Task 4\n### Task 4: d"
    )
    assert [task.dependencies for task in plan.tasks] == [("Task 3",), (), ("Task 2", "Task 4"), ()]
    assert plan.warnings == ("Task 2 waits for Task 1, which waits for it",)


def test_a_task_that_is_called_like_another_is_not_taken_for_it() -> None:
    plan = _plan("### Task 1: a\n### Task 2: Task 1\n### Task 3: c\n**Dependencies:** Task 1")
    assert plan.tasks[2].dependencies == ("Task 1",)


def test_a_description_keeps_what_looks_like_a_part_of_the_plan() -> None:
    description = (
        "First\n**Status:** completed\n- `no/file.py`\n---\nmore\n```\n## Verification\n### Task 2: code\n```\n"
        "## Context\n    ### Task 3: indented"
    )
    plan = _plan(
        "## Goal\ng\n## Context\nc\n## Tasks\n### Task 1: a\n**Files:**\n- `a.py` the parser\n\n"
        f"{description}\n\n---\n\n### Task 2: b"
    )
    assert plan.tasks[0] == Task(1, "a", files=("a.py",), description=description)
    assert [task.title for task in plan.tasks] == ["a", "b"]


def test_another_heading_ends_the_tasks_and_a_number_that_comes_again_is_not_read() -> None:
    plan = _plan("### Task 1: a\n**Description:** in one line\n### Task 1: b\ntext\n## Notes\nx\n### Task 2: c\n")
    assert plan.tasks == (Task(1, "a", description="in one line"),)
    assert len(plan.warnings) == 2


def test_files_in_one_line_and_checks_with_a_capital() -> None:
    plan = _plan("### Task 1: a\n**Files:** `a.py`, `b.py`\n## Verification\n- [X] x\n- [ ] y\n- z\n## Notes\n- [ ] n")
    assert plan.tasks[0].files == ("a.py", "b.py")
    assert plan.verification == ("✓ x", "○ y")


def test_a_code_block_that_nothing_closes_hides_no_task() -> None:
    assert [task.number for task in _plan("### Task 1: a\n```\nx\n\n---\n\n### Task 2: b").tasks] == [1, 2]


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((), "active"),
        (("completed", "completed"), "complete"),
        (("completed", "blocked"), "blocked"),
        (("completed", "pending"), "active"),
    ],
)
def test_the_status_of_a_plan_follows_from_its_tasks(statuses: tuple[TaskStatus, ...], status: str) -> None:
    tasks = [Task(number, "x", one) for number, one in enumerate(statuses, 1)]
    assert Plan("x", tasks=tuple(tasks)).status == status


@pytest.mark.perf
@pytest.mark.parametrize(
    ("start", "part"),
    [
        ("", "```\n"),
        ("", "~~~\n### Task 1:x\n"),
        ("", "### Task {}:x\n"),
        ("", "### Task {}:x{}\n**Dependencies:** Tasks 1-9999,zz\n"),
        ("### Task 1: a\n**Dependencies:** ", "and and "),
        ("### Task 1: a\n**Dependencies:** ", "task "),
        ("### Task 1: a\n**Dependencies:** ", "1-"),
        ("### Task 1: a\n**Dependencies:** x", " "),
        ("### Task 1: a\n**Status:** ", "in "),
        ("### Task 1: a\n**Assignee:** ", ". "),
        ("### Task 1: a\n**Files:** ", "`"),
        ("### Task 1: a\n", "- `a`\n"),
        ("### Task 1", " "),
        ("", "\\"),
    ],
)
def test_no_body_makes_reading_slow(start: str, part: str) -> None:
    text = start + "".join(part.replace("{}", str(place)) for place in range(65_000 // len(part)))
    assert takes_less(0.4, lambda: _plan(text), runs=5)
