"""A plan is written to the byte as peers write it, and read back as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from modules.services.plans.plan_text import format_task_markdown, generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task
from tests.modules.services.plans.plan_values import BODY, PLAN, plans


def test_the_plan_of_the_grammar_is_read_and_written_to_the_same_bytes() -> None:
    assert parse_plan(BODY, "[PLAN] Portfolio comparison") == PLAN
    assert generate_plan_markdown(PLAN) == BODY


def test_a_task_that_has_nothing_but_a_title_is_written_with_its_placeholder() -> None:
    assert format_task_markdown(Task(4, " Look\n around ")) == (
        "### Task 4: Look around\n**Status:** pending\n**Assignee:** (empty if unclaimed)\n**Dependencies:** none\n\n"
        "**Description:**\n"
    )


def test_a_task_without_a_title_is_refused() -> None:
    with pytest.raises(ValueError, match="Task 4 has no title"):
        format_task_markdown(Task(4, " \n"))


@given(plans())
@pytest.mark.slow
def test_what_was_written_is_read_and_written_to_the_same_bytes(plan: Plan) -> None:
    body = generate_plan_markdown(plan)
    read = parse_plan(body, f"[PLAN] {plan.title}")
    assert read is not None
    assert generate_plan_markdown(read) == body
    assert read.warnings == ()
    assert len(read.tasks) == len(plan.tasks)
    for task, kept in zip(plan.tasks, read.tasks, strict=True):
        assert replace(kept, description="") == replace(task, description="", title=" ".join(task.title.split()))
        assert _said(task.description) <= _said(kept.description)
    assert [item[2:] for item in read.verification] == list(plan.verification)


def _said(text: str) -> set[str]:
    return {line.rstrip() for line in text.split("\n") if line.strip()}
