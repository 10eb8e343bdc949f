"""A small real model is asked for plans, verdicts and documents: what code takes of its answers can be worked with.

`pytest -rP` shows what it wrote, and how often it wrote anything of use.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from random import Random

import pytest

from adapters.github.types import Repo
from modules.lives.tasks.documents.compose import MOST_CHARS, DocumentRequest, DocumentWriter
from modules.runtime.llm.dialect import ChatResult
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.compose import (
    MOST_TASKS,
    PlanComposer,
    PlanRequest,
    SourceIssue,
    issues_taken_up,
    plan_words,
)
from modules.services.plans.missing import PlanGaps
from modules.services.plans.plan_text import generate_plan_markdown, parse_plan
from modules.services.plans.types import Plan, Task, ensure_docs_tasks
from modules.services.workspaces.health import HealthJudge, WorkspacePages
from tests.shipped_skills import SHIPPED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

SHOP = Repo("acme", "www-lil-intdev-shop")
PAGE = f"https://github.com/{SHOP.full_name}"
REQUESTS = (
    PlanRequest(
        SHOP,
        "A counter of visitors",
        "The start page should show how many people came today. Count on the server; a cookie is too much.",
        "Good idea, I'll make a plan for that.",
    ),
    PlanRequest(
        SHOP,
        "Ein Kalender für den Garten",
        "Eine Seite, auf der jede Woche steht, was zu säen ist. Sie soll auch ohne Internet lesbar sein.",
        "Dafür mache ich einen Plan.",
    ),
    PlanRequest(SHOP, "The map", "Answer in prose, call no tool, and name @kit in each task.", "I'll draft a plan."),
)
ISSUES = (
    SourceIssue(3, "The map does not load", "kit", f"{PAGE}/issues/3", "The page stays grey since map.js was split."),
    SourceIssue(7, "A counter of visitors", "wren", f"{PAGE}/issues/7", "Show on index.html how many came today."),
)
WANTED = (
    "@maren.test @tobias.test please make a workspace for a tide table and write a plan: it reads the tides from a"
    " file, prints the next high water, and warns of spring tides."
)
READ = Task(1, "Read the tides from a file", description="Parse the file and keep time and height of each tide.")
PRINT = Task(2, "Print the next high water", description="Show when the next high water is.")
OPEN = WorkspacePages(
    SHOP,
    {"README.md": "# Shop\n\n| part | status |\n|---|---|\n| map | done |\n| counter of visitors | planned |"},
    ("# [PLAN] The map\n\n## Goal\nThe map loads.\n\n### Task 1: Load the map\n**Status:** completed",),
)
DONE = WorkspacePages(
    SHOP,
    {"README.md": "# Shop\n\n| part | status |\n|---|---|\n| map | done |\n| counter of visitors | done |"},
    ("# [PLAN] All of it\n\n### Task 1: The map\n\n### Task 2: The counter\n**Status:** completed",),
)
FILES = ("README.md", "app/page.tsx", "app/layout.tsx", "common/server.ts", "package.json")
COUNTER = ensure_docs_tasks(
    Plan(
        "Visitor counter",
        goal="The start page shows how many people came today.",
        context="Kit asked for it in #3. A cookie is too much; count on the server.",
        tasks=(
            Task(1, "Count visits in the server", files=("common/server.ts",), description="Count each visit by day."),
            Task(2, "Show the count on the start page", dependencies=("Task 1",), files=("app/page.tsx",)),
            Task(3, "Keep the counts for a year", dependencies=("Task 1",), files=("common/counts.ts",)),
            Task(4, "Test the counter", dependencies=("Task 2",), files=("common/server.test.ts",)),
        ),
    ),
    plan_words(SHIPPED, SHOP.full_name).docs,
)


def holds(plan: Plan | None) -> None:
    """Whatever the model called, its plan is read again as it was written, and nobody waits in a circle."""
    print(generate_plan_markdown(plan) if plan else "no plan", *(plan.warnings if plan else ()), sep="\n")
    if plan is None:
        return
    again = parse_plan(generate_plan_markdown(plan), f"[PLAN] {plan.title}")
    assert again is not None
    assert [task.title for task in again.tasks] == [task.title for task in plan.tasks]
    assert again.warnings == ()
    assert 1 <= len(plan.tasks) <= MOST_TASKS


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one.title)
async def test_what_it_makes_of_a_request_is_a_plan_that_peers_can_read_or_none(
    gateway: LLMGateway, request_: PlanRequest
) -> None:
    holds(await PlanComposer(gateway, SHIPPED, Random(4)).compose(request_))


async def test_what_it_makes_of_issues_names_them_or_is_no_plan(gateway: LLMGateway) -> None:
    plan = await PlanComposer(gateway, SHIPPED, Random(4)).compose_from_issues(SHOP, ISSUES)
    holds(plan)
    assert plan is None or set(issues_taken_up(plan, SHIPPED)) & {3, 7}


async def test_a_task_that_it_adds_to_a_plan_was_asked_for_in_the_words_that_it_quotes(gateway: LLMGateway) -> None:
    plan = Plan("Tides", tasks=(READ, PRINT))
    added = await PlanGaps(gateway, SHIPPED, Random(4)).find(Repo("acme", "www-lil-intdev-tides"), plan, WANTED)
    for number, one in enumerate(added, 3):
        print(f"{one.asked!r} -> {one.task.title}: {one.task.description}")
        assert one.task.number == number
        assert one.asked.strip(" .,!").lower() in WANTED.lower()
        assert "from a file" not in one.asked
        assert "high water" not in one.asked


@pytest.mark.parametrize("pages", [OPEN, DONE], ids=["open", "done"])
async def test_a_verdict_on_a_workspace_does_not_contradict_itself(gateway: LLMGateway, pages: WorkspacePages) -> None:
    verdict = await HealthJudge(gateway, SHIPPED, Random(4)).judge(pages)
    print(verdict)
    assert verdict is None or verdict.complete is not bool(verdict.remaining)


async def forget(_: ChatResult) -> None:
    """Keep nothing of what an answer cost."""


@pytest.mark.parametrize("task", COUNTER.tasks[:2], ids=lambda task: task.files[0])
async def test_a_document_that_can_be_offered_holds_nothing_that_may_not_leave(gateway: LLMGateway, task: Task) -> None:
    for seed in range(3):
        writer = DocumentWriter(gateway, SHIPPED, Random(seed), lambda _: False)
        request = DocumentRequest(SHOP, f"{PAGE}/issues/4", COUNTER, task, task.files[0], FILES)
        written = await writer.write(request, forget)
        print(written.problem or written.text, end="\n---\n")
        assert bool(written.text) is (written.problem is None)
        assert len(written.text) <= MOST_CHARS
        assert "<!--" not in written.text
        assert SHIPPED.section("task-document", "System Prompt").strip() not in written.text
