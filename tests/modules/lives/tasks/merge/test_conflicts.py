"""Proves that one round merges the base into the branch of a pull request of ours that conflicts with its base."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from modules.lives.tasks.execute import place_of_pull
from modules.lives.tasks.merge.handle import CONFLICT
from modules.lives.tasks.merge.perceive import MERGE, row_of
from modules.services.claims.lease_store import TaskOrders
from modules.services.plans.types import TaskChange
from modules.services.plans.update import update_task_in_plan_body
from tests.adapters.results import ok
from tests.modules.lives.tasks.test_task_stops import commands_running
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, call
from tests.scenarios.code_review import SITE, Reviewed, open_reviewed, task_with_a_fault
from tests.scenarios.github_talk import CLOCK
from tests.town.github_place import needs_git
from town.model.types import Completion

pytestmark = [needs_git, needs_sandbox]

BOTH = "BEDS = 3  # by us, by them\n"
RESOLVED = (
    call("write_file", path="beds.py", content=BOTH),
    call("finish", summary="Both notes are kept.", description="More beds."),
)


@asynccontextmanager
async def conflicting(
    town: RunningTown, *codes: Completion, others: str = "BEDS = 3  # by them\n"
) -> AsyncIterator[Reviewed]:
    """Open a place where the pull request of `kit` and `others`, merged meanwhile, change the same line."""
    async with open_reviewed(town) as place:
        await task_with_a_fault(place)
        place.pull.requested.clear()
        await place.put("beds.py", "BEDS = 3  # by us\n", place.pull.head_ref)
        await place.put("beds.py", others)
        await place.put("OTHER.md", "Other work.\n")
        place.judges("APPROVE", *codes)
        yield place


async def look(soul: RunningSoul, number: int, loops: Sequence[str] = ("merges", "tasks")) -> None:
    """Let the SOUL look at its own pull request, and do what it needs."""
    CLOCK.ahead += 200
    services = soul.app.services
    services.workspaces.watch(SITE)
    await services.work.add(row_of(SITE, ok(await services.github.get_issue(SITE, number))))
    for loop in loops:
        async with soul.sending():
            await soul.app.scheduler.run_guarded(loop)
        await soul.send()


async def on_branch(place: Reviewed, path: str) -> str:
    return ok(await place.owner.contents.read(SITE, path, ref=place.pull.head_ref)).text


@pytest.mark.slow
async def test_a_conflict_is_resolved_with_both_sides_in_one_merge_commit_and_then_merged(
    running_town: RunningTown,
) -> None:
    async with conflicting(running_town, *RESOLVED) as place, awake(place.home("kit"), clock=CLOCK) as kit:
        number, before, base = place.number, place.pull.head, ok(await place.owner.refs.get(SITE, "main")).sha
        ok(await place.owner.pulls.create_review(SITE, number, event="APPROVE", commit_id=before))
        await look(kit, place.number)
        commit = ok(await place.owner.refs.commit(SITE, place.pull.head))
        assert commit.parents == (before, base)
        assert (await on_branch(place, "beds.py"), await on_branch(place, "OTHER.md")) == (BOTH, "Other work.\n")
        told = place.coded[0].messages[-1].text
        assert "Merge conflict in beds.py" in told
        assert [one.login for one in place.pull.requested] == ["owner"]
        assert not list((kit.app.services.home.root / ".workrepos").iterdir())
        await look(kit, place.number)
        assert place.pull.merged_at is None
        ok(await place.owner.pulls.create_review(SITE, number, event="APPROVE", commit_id=place.pull.head))
        await look(kit, place.number)
        assert place.pull.merged_at is not None
        assert len(place.place.repo.pulls) == 1
        assert len(place.coded) == len(RESOLVED)


@pytest.mark.slow
async def test_what_is_green_alone_and_red_together_is_not_merged_until_a_round_mends_it(
    running_town: RunningTown,
) -> None:
    mended = (
        call("write_file", path="soil.py", content="import beds\nSOIL = beds.COUNT\n"),
        call("finish", summary="It uses COUNT.", description="Soil for all beds."),
    )
    async with open_reviewed(running_town) as place, awake(place.home("kit"), clock=CLOCK) as kit:
        await place.put("Makefile", "test:\n\tfor one in *.py; do python3 $$one || exit 1; done\n")
        await task_with_a_fault(place, {"soil.py": "import beds\nSOIL = beds.BEDS\n"})
        place.pull.requested.clear()
        approved, number = place.pull.head, place.number
        ok(await place.owner.pulls.create_review(SITE, number, event="APPROVE", commit_id=approved))
        await place.put("check.py", "import beds\nassert beds.COUNT == 3\n")
        await place.put("beds.py", "COUNT = 3\n")
        place.judges("APPROVE", *mended)
        assert ok(await place.owner.pulls.get(SITE, number)).mergeable
        for path in ("ONE.md", "docs/TWO.md"):
            await look(kit, number, ["merges"])
            (row,) = await kit.app.services.work.newest(MERGE, 9)
            assert (row.payload["rehearsed"]["count"], bool(row.payload["rehearsed"]["failing"])) == (1, True)
            await place.put(path, "A document.\n")
        await look(kit, number)
        assert (place.pull.merged_at, place.pull.issue.state) == (None, "open")
        assert "no attribute 'BEDS'" in place.coded[0].messages[-1].text
        assert place.pull.head != approved
        ok(await place.owner.pulls.create_review(SITE, number, event="APPROVE", commit_id=place.pull.head))
        await place.put("OTHER.md", "Other work.\n")
        await look(kit, number)
        assert place.pull.merged_at is not None
        assert len(place.coded) == len(mended)
        (row,) = await kit.app.services.work.newest(MERGE, 9)
        assert (row.payload["rehearsed"]["count"], row.payload["rehearsed"]["failing"]) == (1, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "codes",
    [
        pytest.param([call("blocked", reason="They exclude each other.")], id="given up"),
        pytest.param(
            [call("finish", summary="Done.", description="More beds."), call("blocked", reason="I see markers.")],
            id="markers left",
        ),
    ],
)
async def test_a_conflict_that_was_not_resolved_is_not_pushed_and_the_branch_stays(
    running_town: RunningTown, codes: Sequence[Completion]
) -> None:
    async with conflicting(running_town, *codes) as place, awake(place.home("kit"), clock=CLOCK) as kit:
        before = place.pull.head
        for _ in range(2):
            await look(kit, place.number)
        branches = {one.name for one in ok(await place.owner.refs.branches(SITE))}
        assert (place.pull.issue.state, place.pull.merged_at, place.pull.head) == ("closed", None, before)
        assert place.pull.head_ref in branches
        assert len(place.coded) == len(codes)


@pytest.mark.slow
async def test_a_merge_that_waits_for_the_owner_is_pushed_after_a_restart_and_made_once(
    running_town: RunningTown,
) -> None:
    async with conflicting(running_town, *RESOLVED) as place:
        home, before = place.home("kit", SOUL_APPROVAL="drafts"), place.pull.head
        async with awake(home, clock=CLOCK) as kit:
            await look(kit, place.number)
        async with awake(home, clock=CLOCK) as kit:
            services = kit.app.services
            (push,) = await services.outbox.held()
            assert (push.kind, place.pull.head) == ("push", before)
            task = place_of_pull(SITE, ok(await services.github.pulls.get(SITE, place.number)))
            assert task is not None
            orders = TaskOrders(services.work, services.events.publish)
            await orders.leave(task)
            await services.outbox.approve(push.id)
            await services.outbox.deliver_due()
            assert place.pull.head == before
            await orders.take(task)
            await kit.send()
            await look(kit, place.number)
            (row,) = await kit.app.services.work.newest(CONFLICT, 9)
        assert (row.state, row.outcome) == ("done", "pushed")
        assert await on_branch(place, "beds.py") == BOTH
        assert len(place.coded) == len(RESOLVED)


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["left", "lost", "closed"])
async def test_the_programs_of_a_round_end_at_the_owners_word_and_when_it_is_lost(
    running_town: RunningTown, reason: str
) -> None:
    child = f"96{os.getpid()}"
    runs = call("run", command=f"sleep {child} & sleep {child}")
    async with conflicting(running_town, runs) as place, awake(place.home("kit"), clock=CLOCK) as kit:
        services = kit.app.services
        pull = ok(await services.github.pulls.get(SITE, place.number))
        task = place_of_pull(SITE, pull)
        assert task is not None
        await services.work.add(task.row)
        working = asyncio.create_task(look(kit, place.number))
        await until(lambda: child in commands_running(), what="the program")
        if reason == "left":
            await TaskOrders(services.work, services.events.publish).leave(task)
        elif reason == "closed":
            ok(await place.owner.update_issue(SITE, place.number, state="closed"))
        else:
            plan = ok(await place.owner.get_issue(SITE, task.issue))
            body = update_task_in_plan_body(plan.body, 1, TaskChange("in_progress", "owner")).body
            ok(await place.owner.update_issue(SITE, task.issue, body=body))
        await until(lambda: child not in commands_running(), what="the end of the program")
        await working
        (row,) = await services.work.newest(CONFLICT, 9)
        assert row.outcome == "left-alone" if reason == "left" else "given-back"
