"""A small real model turns what people want into a plan that a SOUL can work on.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from random import Random

import pytest

from adapters.github.types import Repo
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.compose import PlanComposer, PlanRequest
from modules.services.plans.render import generate_plan_markdown
from tests.shipped_skills import SHIPPED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

SHOP = Repo("acme", "www-lil-intdev-shop")
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
    PlanRequest(
        SHOP,
        "Repairing the ferry bench page",
        "The opening hours are wrong and the map does not load. The page has no tests yet.",
        "I'll draft a plan for it.",
    ),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one.title)
async def test_it_makes_a_plan_of_several_tasks(gateway: LLMGateway, request_: PlanRequest) -> None:
    plan = await PlanComposer(gateway, SHIPPED, Random(4)).compose(request_)
    assert plan is not None
    print(generate_plan_markdown(plan), *plan.warnings, sep="\n")
    assert 2 <= len(plan.tasks) <= 6
    assert all(task.description for task in plan.tasks)
    assert plan.goal
