"""Proves how the work on a task is offered: put off, left to others, begun without a commit, held by its claim."""

import sqlite3
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest

from modules.lives.tasks.types import Deferred, Lost, Opened
from modules.services.outbox.types import ProposedAction, Verdict
from tests.adapters.results import ok
from tests.modules.lives.tasks.code_rig import BRANCH, CODE, TASK, CodeRig
from tests.modules.lives.tasks.workplace import GARDEN, PLAN, open_workplace
from tests.modules.services.coding.coding_rig import does, needs_sandbox
from tests.town.github_place import needs_git
from town.github.values import Fault

pytestmark = [needs_git, needs_sandbox]


async def test_a_document_is_offered_alone_and_needs_no_tests(rig: CodeRig) -> None:
    place, (task, _) = rig.workplace, PLAN.tasks
    document = "# Scenarios\n\n## A dry bed\n\nA drop is beside it.\n"
    writes, ends = does("write_file", path="SCENARIOS.md", content=document), does("finish", summary="Two scenarios.")
    place.model.plays(writes, ends)
    assert isinstance(await rig.code().do(await place.held(task)), Opened)
    (pull,) = await place.pulls()
    assert [one.path for one in ok(await place.github.pulls.files(GARDEN, pull.number))] == ["SCENARIOS.md"]
    assert await place.text("SCENARIOS.md", pull.head.ref) == document
    asked = str(place.model.requests[0]["messages"])
    assert "- Show the beds (page.ts)" in asked, "it knows what the other tasks make"


async def test_a_task_is_put_off_where_github_cannot_answer_just_now(rig: CodeRig) -> None:
    held = await rig.workplace.held(TASK)
    rig.workplace.place.faults.arm(Fault("secondary_limit", "GET /repos/ada/garden/branches", seconds=3600))
    assert isinstance(await rig.code().do(held), Deferred)
    assert rig.workplace.model.requests == []


async def test_a_task_is_put_off_where_its_pull_request_may_be_opened_only_later(rig: CodeRig) -> None:
    def full(_: sqlite3.Connection, action: ProposedAction, __: datetime, /) -> list[Verdict]:
        is_pull = action.kind == "pull_request"
        return [Verdict("full", "block", "enough", instead="later", retry_in_s=600)] if is_pull else []

    rig.workplace.outbox.rules = (*rig.workplace.outbox.rules, full)
    put_off = await rig.does(*CODE)
    assert isinstance(put_off, Deferred)
    assert put_off.retry_after == pytest.approx(600, abs=60)


async def test_what_was_proposed_under_a_claim_that_is_over_never_leaves(rig: CodeRig) -> None:
    place = rig.workplace
    place.model.plays(*CODE)
    await place.lives_until("pull_request", rig.code(), TASK)
    await place.restart()
    await place.lease(ends_in_s=-1)
    await place.outbox.deliver_due()
    assert await place.pulls() == ()
    await place.lease(ends_in_s=60)
    await place.outbox.deliver_due()
    assert len(await place.pulls()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_branch_that_a_lost_claim_pushed_makes_way_for_the_next_one_unless_somebody_changed_it(
    rig: CodeRig, *, is_changed: bool
) -> None:
    place = rig.workplace
    place.model.plays(*CODE)
    await place.lives_until("pull_request", rig.code(), TASK)
    if is_changed:
        bea = place.client("bea")
        ok(await bea.contents.write(GARDEN, "beds.md", "Three.\n", message="Mine", branch=BRANCH))
    await place.lease(epoch=2)
    await place.restart()
    place.model.plays(*CODE)
    assert isinstance(await rig.code().do(await place.held(TASK, epoch=2)), Opened)
    (pull,) = await place.pulls()
    others = [one for one in await place.branches() if one != "main"]
    assert (pull.head.ref, others) == ((f"{BRANCH}-e2", [BRANCH, f"{BRANCH}-e2"]) if is_changed else (BRANCH, [BRANCH]))


@pytest.mark.slow
async def test_a_branch_of_somebody_else_is_left_alone(rig: CodeRig) -> None:
    place = rig.workplace
    head = ok(await place.github.refs.get(GARDEN, "main"))
    ok(await place.client("bea").refs.create(GARDEN, BRANCH, head.sha))
    assert isinstance(await rig.does(*CODE), Opened)
    assert ok(await place.github.refs.get(GARDEN, BRANCH)).sha == head.sha
    (pull,) = await place.pulls()
    assert pull.head.ref == f"{BRANCH}-e1"


async def test_a_pull_request_of_somebody_else_ends_the_work(rig: CodeRig) -> None:
    bea = rig.workplace.client("bea")
    head = ok(await bea.refs.get(GARDEN, "main"))
    ok(await bea.refs.create(GARDEN, BRANCH, head.sha))
    ok(await bea.contents.write(GARDEN, "beds.py", "BEDS = 1\n", message="Mine", branch=BRANCH))
    body = f"Part of #{rig.workplace.issue}"
    ok(await bea.pulls.create(GARDEN, title="task(1): Mine", body=body, head=BRANCH, base="main"))
    assert await rig.does() == Lost()
    assert rig.workplace.model.requests == []


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[CodeRig]:
    """Open a garden that has no commit."""
    async with open_workplace(tmp_path, has_commit=False) as opened:
        yield CodeRig(opened)


async def test_a_repository_without_a_commit_gets_its_first_so_that_work_can_be_offered(bare: CodeRig) -> None:
    place = bare.workplace
    result = await bare.does(*CODE)
    (pull,) = await place.pulls()
    assert isinstance(result, Opened)
    assert await place.text("README.md", "main") == "# garden\n\nWhat grows\n"
    files = ok(await place.github.pulls.files(GARDEN, pull.number))
    assert {one.path for one in files} == {"Makefile", "beds.py"}
    assert await bare.does() == result


@pytest.mark.slow
@pytest.mark.parametrize("meanwhile", ["", "Beans.\n"], ids=["its own", "of somebody else"])
async def test_a_life_that_ended_before_the_first_commit_makes_it_once_or_builds_upon_another(
    bare: CodeRig, meanwhile: str
) -> None:
    place = bare.workplace
    await place.lives_until("contents", bare.code(), TASK)
    if meanwhile:
        await place.put("README.md", meanwhile)
    await place.restart()
    assert isinstance(await bare.does(*CODE), Opened)
    assert await place.text("README.md", "main") == (meanwhile or "# garden\n\nWhat grows\n")
    assert len((await place.place.ask("GET", "/repos/ada/garden/commits")).json()) == 1
