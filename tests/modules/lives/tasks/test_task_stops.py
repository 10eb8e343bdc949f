"""Proves that a pause and the owner's word end the work on a task at once, and that its state is kept."""

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from common.errors import SoulError
from common.redact import Redactor
from modules.lives.tasks.handle import PAUSE_S
from modules.lives.tasks.offering import TaskActs
from modules.lives.tasks.types import Blocked, Failed, HeldTask, Stopped, WorkResult
from modules.runtime.sandbox.policy import Limits
from modules.runtime.sandbox.runner import Sandbox
from modules.services.claims.policy import LEASE
from modules.services.outbox.github_bodies import PullRequestBody
from modules.services.outbox.github_writer import for_workspace
from modules.services.plans.types import Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from soul.commands.tasks import TaskLine, task_lines, tasks_of
from tests.adapters.results import ok
from tests.modules.lives.tasks.site import PLAN, SITE, Work, site_with_plan
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import HANG_S, until
from tests.running_town import RunningTown
from tests.town_github import TownGitHub


@needs_sandbox
async def test_a_pause_ends_a_running_program_and_its_children_and_the_work_goes_on_under_the_same_claim(
    running_town: RunningTown, town_github: TownGitHub, tmp_path: Path
) -> None:
    async with site_with_plan(town_github) as site:
        control, epochs = site.services.control, list[int]()
        child = f"98{os.getpid()}"

        async def codes(work: HeldTask) -> WorkResult:
            epochs.append(work.epoch)
            if len(epochs) > 1:
                return Failed("code_blocked")
            command = f"sleep {child} & touch begun; sleep {child}"
            await Sandbox(redactor=Redactor()).run(["/bin/sh", "-c", command], tmp_path, limits=Limits(wall_s=HANG_S))
            return Failed("error", "the program ended by itself")

        rooms = site.rooms(Work(codes, frozenset({2})))
        working = asyncio.create_task(site.run(rooms))
        await until((tmp_path / "begun").exists, what="the program")
        assert child in commands_running()
        control.pause("dinner")
        await working
        assert child not in commands_running()
        assert await site.task(2) == ("in_progress", "rowan")
        assert (await site.row(2)).state == "pending"
        told = [one.entry for one in await site.services.journal.recent(20)]
        assert [one.line for one in told if "dinner" in one.reason and "soul why" in one.summary] == ["warn"]
        control.resume()
        await site.clock.sleep(PAUSE_S)
        await site.run(rooms)
        assert epochs == [1, 1]
        assert await site.task(2) == ("blocked", None)


async def test_what_the_owner_says_of_a_task_is_done_at_once_and_kept(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        begun, asked = asyncio.Event(), list[int]()

        async def codes(work: HeldTask) -> WorkResult:
            asked.append(work.task.number)
            begun.set()
            await asyncio.sleep(HANG_S)
            return Failed("error", "nobody stopped it")

        rooms = site.rooms(Work(codes, frozenset({1, 2})))
        await site.look(rooms)
        orders = rooms.life.orders
        with pytest.raises(SoulError):
            await orders.meant("3 of them")
        await orders.take(await orders.meant("1"))
        working = asyncio.create_task(rooms.life.loop.run())
        await begun.wait()
        assert asked == [1]
        line, *_ = await tasks_of(site.services.database, site.services.home, site.clock, town_github.url)
        assert (line.task, line.title, line.state, line.holder) == (
            f"{SITE.full_name}#1/task-1",
            "Count",
            "ours",
            "rowan",
        )
        assert line.link == ok(await site.services.github.get_issue(SITE, 1)).html_url
        (told,) = task_lines([line], site.services.settings)
        assert told.split("  ")[:2] == [line.task, line.title]
        begun.clear()
        await orders.leave(await orders.meant(f"{SITE.full_name}#1/task-1"))
        await begun.wait()
        assert await site.task(1) == ("pending", None)
        await orders.leave(await orders.meant("2"))
        await working
        assert asked == [1, 2]
        await site.run(site.rooms(Work(codes, frozenset({1, 2}))))
        assert asked == [1, 2]
        assert await site.task(1) == ("pending", None)


@pytest.mark.slow
async def test_a_task_of_somebody_else_is_told_as_it_stands_on_its_plan_also_once_that_is_closed(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github) as site:
        github, services = site.services.github, site.services

        async def writes(*changes: TaskChange, state: Literal["open", "closed"] = "open") -> TaskLine:
            body = ok(await github.get_issue(SITE, 1)).body
            for change in changes:
                body = update_task_in_plan_body(body, 1, change).body
            ok(await github.update_issue(SITE, 1, body=body, state=state))
            await site.look(rooms)
            lines = await tasks_of(services.database, services.home, site.clock, github.address)
            return next(one for one in lines if one.task.endswith("/task-1"))

        rooms = site.rooms(Work(offers_nothing, frozenset({1})))
        assert (await writes()).state == "waiting"
        taken = await writes(TaskChange("in_progress", "kit"))
        assert (taken.state, taken.holder) == ("in_progress", "kit")
        await rooms.life.loop.run()
        assert (await site.row(1)).outcome == "taken"
        assert "in work by kit since" in task_lines([await writes()], site.services.settings)[0]
        done = await writes(TaskChange("completed", ""), state="closed")
        assert (done.state, done.holder) == ("completed", "")


async def offers_nothing(_: HeldTask) -> WorkResult:
    raise AssertionError("it is somebody else's")


def commands_running() -> str:
    """Return the command lines of all processes on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return "\n".join(found)


@pytest.mark.slow
async def test_with_drafts_a_task_is_taken_by_the_owners_word_and_stays_ours_until_the_owner_decides(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, SOUL_APPROVAL="drafts") as site:
        outbox, results = site.services.outbox, list[WorkResult]()

        async def codes(work: HeldTask) -> WorkResult:
            acts = TaskActs(work)
            held = await outbox.submit(acts.pull_request(head="task-2", base="main", body="Counts."))
            results.append(Stopped("it waits") if held.intent.state == "held" else Failed("code_blocked"))
            return results[-1]

        rooms = site.rooms(Work(codes, frozenset({2})))
        await site.run(rooms)
        assert not results
        await rooms.life.orders.take(await rooms.life.orders.meant("2"))
        for _ in range(4):
            await rooms.life.loop.run()
            await site.clock.sleep(LEASE.total_seconds() / 3)
        assert results == [Stopped("it waits")]
        assert await site.task(2) == ("in_progress", "rowan")
        (draft,) = [one for one in await outbox.held() if one.kind == "pull_request"]
        await outbox.approve(draft.id)
        await rooms.life.loop.run()
        assert results == [Stopped("it waits"), Failed("code_blocked")]


@pytest.mark.slow
async def test_after_one_no_a_task_is_left_alone_in_public_too_and_its_next_try_knows_the_reason(
    running_town: RunningTown, town_github: TownGitHub
) -> None:
    async with site_with_plan(town_github, WORKSPACE_ORG="acme") as site:
        outbox, tries = site.services.outbox, list[tuple[str, ...]]()

        async def codes(work: HeldTask) -> WorkResult:
            tries.append(work.tries)
            body = PullRequestBody(**for_workspace(SITE), title="Tides", body="Part of #1", head="task-2", base="main")
            held = await outbox.submit(replace(TaskActs(work).action("pull-request", body), hold="a workflow"))
            return Stopped(held.reason)

        async def no(reason: str) -> None:
            (draft,) = await outbox.held()
            await outbox.reject(draft.id, reason=reason)
            for _ in range(6):
                await site.clock.sleep(PAUSE_S)
                await site.run(rooms)

        rooms = site.rooms(Work(codes, frozenset({2})))
        await site.run(rooms)
        await no("never touch the workflows")
        assert (tries, await site.task(2)) == ([()], ("pending", None))
        (told,) = await site.comments()
        assert site.services.phrases.phrase("github.task_released") in told
        await rooms.life.orders.take(await rooms.life.orders.meant("2"))
        await site.run(rooms)
        await no("nor the lock file")
        assert len(tries) == 2
        assert "never touch the workflows" in tries[1][-1]
        assert await site.task(2) == ("pending", None)


@pytest.mark.slow
@pytest.mark.parametrize("result", [Blocked("Of what?"), Failed("code_blocked")], ids=["asked", "abandoned"])
async def test_another_task_is_taken_while_one_waits_for_people(
    running_town: RunningTown, town_github: TownGitHub, result: WorkResult
) -> None:
    async with site_with_plan(town_github, replace(PLAN, tasks=(Task(1, "Count"), Task(2, "Show")))) as site:

        async def ends(_: HeldTask) -> WorkResult:
            return result

        work = Work(ends)
        rooms = site.rooms(work)
        for _ in range(10):
            await site.run(rooms)
            site.clock.ahead += PAUSE_S
        assert set(work.asked) == {1, 2}
