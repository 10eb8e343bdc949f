"""A plan that is made of issues ends with the tasks that bring the pages up to date."""

from __future__ import annotations

import pytest

from modules.services.plans.docs_tasks import (
    DocsTask,
    DocsWords,
    changes_more_than_documents,
    ensure_docs_tasks,
    with_docs_updates,
)
from modules.services.plans.types import Plan, Task

MAKE = DocsWords(DocsTask("Create LIL-INTDEV-AGENTS.md", "d", "e"), DocsTask("Create SCENARIOS.md", "d", "e"))
UPDATE = DocsWords(DocsTask("Update LIL-INTDEV-AGENTS.md", "d", "e"), DocsTask("Update SCENARIOS.md", "d", "e"))
CODE = Task(1, "Count", files=("server.js",))


def titles(plan: Plan) -> list[str]:
    return [f"{task.name}: {task.title}" for task in with_docs_updates(plan, UPDATE).tasks]


def test_the_pages_are_updated_when_all_else_is_done() -> None:
    plan = with_docs_updates(ensure_docs_tasks(Plan("p", tasks=(CODE,)), MAKE), UPDATE)
    assert [task.title for task in plan.tasks] == [
        "Create LIL-INTDEV-AGENTS.md",
        "Create SCENARIOS.md",
        "Count",
        "Update LIL-INTDEV-AGENTS.md",
        "Update SCENARIOS.md",
    ]
    assert {task.dependencies for task in plan.tasks[3:]} == {("Task 1", "Task 2", "Task 3")}


def test_a_page_that_the_last_tasks_update_is_left_to_them() -> None:
    last = Task(2, "Tell what changed", files=("docs/scenarios.md",))
    assert titles(Plan("p", tasks=(CODE, last))) == [
        "Task 1: Count",
        "Task 2: Tell what changed",
        "Task 3: Update LIL-INTDEV-AGENTS.md",
    ]


@pytest.mark.parametrize(
    ("files", "more"), [(("SCENARIOS.md", "docs/a.MD"), False), (("a.md", "b.py"), True), ((), True)]
)
def test_a_plan_for_documents_alone_is_known(files: tuple[str, ...], *, more: bool) -> None:
    assert changes_more_than_documents(Plan("p", tasks=(Task(1, "t", files=files),))) is more
