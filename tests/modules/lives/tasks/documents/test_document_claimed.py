"""A whole SOUL claims a task that asks for a document, writes it, and offers it."""

from __future__ import annotations

import pytest

from modules.lives.tasks.types import AlreadyDone, HeldTask, WorkResult
from modules.services.plans.types import Plan, Task
from soul.composition.wiring.tasks import build_document_work
from tests.adapters.results import ok
from tests.modules.lives.tasks.documents.workplace import DOCUMENT
from tests.modules.lives.tasks.site import SITE, Work, site_with_plan
from tests.running_town import RunningTown
from tests.shipped_skills import phrase
from tests.town.github_place import needs_git
from tests.town_github import TownGitHub
from town.model.types import Completion

PLAN = Plan(
    "A counter",
    goal="Visitors see which beds need water.",
    tasks=(Task(1, "Count", files=("count.ts",)), Task(2, "Create SCENARIOS.md", files=("SCENARIOS.md",))),
)


@needs_git
async def test_a_claimed_document_is_offered_told_of_on_the_plan_and_kept_until_the_merge(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = lambda _: Completion(text=DOCUMENT)
    async with site_with_plan(town_github, PLAN) as site:
        work = build_document_work(site.services)
        await site.cycle(work)
        assert (await site.row(2)).outcome == "opened"
        (pull,) = ok(await site.services.github.pulls.list(SITE))
        assert (pull.title, pull.head.ref) == ("task(2): Create SCENARIOS.md", "task-2-create-scenariosmd")
        read = await site.services.github.contents.read(SITE, "SCENARIOS.md", ref=pull.head.ref)
        assert ok(read).text == DOCUMENT
        assert await site.task(2) == ("in_progress", "rowan")
        told = (await site.comments())[-1]
        assert pull.html_url in told
        assert ("Completed" in told, "complete" in told, '"event":"opened"' in told) == (False, False, True)
        assert (await site.cycle(work)).notes == ()
        assert len(ok(await site.services.github.pulls.list(SITE, state="all"))) == 1
        ok(await site.services.github.pulls.merge(SITE, pull.number))
        site.clock.ahead += 600
        await site.cycle(work)
        await site.cycle(work)
        assert await site.task(2) == ("completed", None)
        assert len(await site.comments()) == 1, "GitHub itself tells of the merge"


async def test_a_document_that_stands_is_left_to_the_work_on_code(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async def edit(_: HeldTask) -> WorkResult:
        return AlreadyDone("It says so.")

    task = Task(1, "Add an example to the README", files=("README.md",))
    async with site_with_plan(town_github, Plan("An example", goal="g", tasks=(task,))) as site:
        documents, code = build_document_work(site.services), Work(edit, frozenset({1}))
        await site.cycle(documents)
        assert (await site.row(1)).outcome == "no-worker"
        site.clock.ahead += 3601
        await site.cycle(documents, code)
        assert code.asked == [1]
        assert await site.task(1) == ("completed", None)


@pytest.mark.slow
async def test_what_is_wrong_with_a_document_that_cannot_be_offered_is_told_in_words(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    running_town.mind.answer = lambda _: Completion(text="# Scenarios")
    async with site_with_plan(town_github, PLAN) as site:
        await site.cycle(build_document_work(site.services))
        told = (await site.comments())[-1].partition("<!--")[0]
        assert all(words in told for words in ("`SCENARIOS.md`", phrase("document_problem.empty")))
        assert not any(code in told for code in ("Empty", "document_unfit", "Failed("))
