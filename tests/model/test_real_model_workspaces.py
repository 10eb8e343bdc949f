"""A small real model makes a plan of issues, and judges whether a workspace is finished.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from random import Random

import pytest

from adapters.github.types import Repo
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.compose import PlanComposer, SourceIssue, issues_in
from modules.services.plans.render import generate_plan_markdown
from modules.services.workspaces.health import HealthJudge, WorkspacePages
from tests.shipped_skills import SHIPPED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

SHOP = Repo("acme", "www-lil-intdev-shop")
ISSUES = (
    SourceIssue(
        3, "The map does not load", "kit", f"{SHOP.url}/issues/3", "The page stays grey since map.js was split."
    ),
    SourceIssue(7, "A counter of visitors", "wren", f"{SHOP.url}/issues/7", "Show on index.html how many came today."),
)
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


async def test_its_tasks_name_the_issues_that_they_are_for(gateway: LLMGateway) -> None:
    plan = await PlanComposer(gateway, SHIPPED, Random(4)).compose_from_issues(SHOP, ISSUES)
    assert plan is not None
    print(generate_plan_markdown(plan), *plan.warnings, sep="\n")
    assert issues_in(plan, {3, 7})


@pytest.mark.parametrize("pages", [OPEN, DONE], ids=["open", "done"])
async def test_it_gives_a_verdict_that_can_be_used(gateway: LLMGateway, pages: WorkspacePages) -> None:
    verdict = await HealthJudge(gateway, SHIPPED, Random(4)).judge(pages)
    print(verdict)
    assert verdict is not None
