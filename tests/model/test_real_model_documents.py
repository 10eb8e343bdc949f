"""A small real model writes the documents with which every plan begins.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

from random import Random

import pytest

from adapters.github.types import Repo
from modules.lives.workspaces.documents.compose import DocumentRequest, DocumentWriter
from modules.runtime.llm.gateway import LLMGateway
from modules.services.plans.docs_tasks import ensure_docs_tasks
from modules.services.plans.types import Plan, Task
from modules.services.plans.words import plan_words
from tests.shipped_skills import SHIPPED

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

SHOP = Repo("acme", "www-lil-intdev-shop")
FILES = ("README.md", "app/page.tsx", "app/layout.tsx", "common/server.ts", "package.json")
PLAN = ensure_docs_tasks(
    Plan(
        "Visitor counter",
        goal="The start page shows how many people came today.",
        context="Kit asked for it in #3. A cookie is too much; count on the server.",
        tasks=(
            Task(1, "Count visits in the server", files=("common/server.ts",), description="Count each visit by day."),
            Task(2, "Show the count on the start page", dependencies=("Task 1",), files=("app/page.tsx",)),
        ),
    ),
    plan_words(SHIPPED, SHOP.full_name).docs,
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("task", PLAN.tasks[:2], ids=lambda task: task.files[0])
async def test_it_writes_a_document_that_can_be_offered(gateway: LLMGateway, task: Task, seed: int) -> None:
    writer = DocumentWriter(gateway, SHIPPED, Random(seed), lambda _: False)
    path = task.files[0]
    written = await writer.write(DocumentRequest(SHOP, f"{SHOP.url}/issues/4", PLAN, task, path, FILES))
    print(written.problem or written.text)
    assert written.problem is None
