"""A small real model compares what the owner asked for with a plan; code keeps what it quotes and no task covers.

`pytest -rP` shows what it named.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from random import Random

import pytest

from adapters.github.types import Repo
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.missing import PlanGaps
from modules.services.plans.types import Plan, Task
from tests.shipped_skills import SHIPPED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

TIDES = Repo("acme", "www-lil-intdev-tides")
WANTED = (
    "@maren.test @tobias.test please make a workspace for a tide table and write a plan: it reads the tides from a"
    " file, prints the next high water, and warns of spring tides."
)
READ = Task(1, "Read the tides from a file", description="Parse the file and keep time and height of each tide.")
PRINT = Task(2, "Print the next high water", description="Show when the next high water is.")
WARN = Task(3, "Warn of spring tides", description="Show a warning where a spring tide is near.")


async def named(gateway: LLMGateway, *tasks: Task) -> list[str]:
    found = await PlanGaps(gateway, SHIPPED, Random(4)).find(TIDES, Plan("Tides", tasks=tasks), WANTED)
    for one in found:
        print(f"{one.asked!r} -> {one.task.title}: {one.task.description}")
    return [one.asked for one in found]


async def test_it_adds_nothing_that_a_task_does_already(gateway: LLMGateway) -> None:
    added = await named(gateway, READ, PRINT)
    assert not any("from a file" in asked or "high water" in asked for asked in added)


async def test_nothing_is_added_to_a_plan_that_covers_all(gateway: LLMGateway) -> None:
    assert await named(gateway, READ, PRINT, WARN) == []
