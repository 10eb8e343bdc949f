"""A large plan that is made of issues ends with the tasks that bring the pages up to date."""

from __future__ import annotations

import pytest

from modules.services.plans.types import (
    DocsTask,
    DocsWords,
    Plan,
    Task,
    changes_more_than_documents,
    with_docs_updates,
)

UPDATE = DocsWords(DocsTask("Update LIL-INTDEV-AGENTS.md", "d", "e"), DocsTask("Update SCENARIOS.md", "d", "e"))
FOUR = tuple(Task(number, title, files=(f"{title}.js",)) for number, title in enumerate("abcd", 1))


def test_the_pages_that_no_task_makes_are_updated_when_all_else_is_done() -> None:
    made = Task(5, "Tell what changed", files=("docs/scenarios.md",))
    plan = with_docs_updates(Plan("p", tasks=(*FOUR, made)), UPDATE)
    *_, last = plan.tasks
    assert [task.title for task in plan.tasks[4:]] == ["Tell what changed", "Update LIL-INTDEV-AGENTS.md"]
    assert last.dependencies == tuple(task.name for task in plan.tasks[:-1])


def test_a_small_plan_gets_no_task_for_the_pages() -> None:
    plan = Plan("p", tasks=(*FOUR[:3], Task(4, "Create SCENARIOS.md")))
    assert with_docs_updates(plan, UPDATE) == plan


@pytest.mark.parametrize(
    ("files", "more"), [(("SCENARIOS.md", "docs/a.MD"), False), (("a.md", "b.py"), True), ((), True)]
)
def test_a_plan_for_documents_alone_is_known(files: tuple[str, ...], *, more: bool) -> None:
    assert changes_more_than_documents(Plan("p", tasks=(Task(1, "t", files=files),))) is more
