"""A model that is slow blinds nobody: reading goes on while the SOUL thinks, and the status tells what waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress

from tests.living import Life, World, awake
from tests.patience import HANG_S
from town.model.faults import Fault
from town.model.types import ChatRequest, Completion

HANGS = Fault("hang", times=1000, seconds=600)


@asynccontextmanager
async def going_on(work: Awaitable[object]) -> AsyncIterator[None]:
    """While `work` is under way; it is cancelled in the end."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def busy_with(life: Life, what: str) -> None:
    for _ in range(4000):
        if life.app.services.attention.mode == what:
            return
        await asyncio.sleep(0.005)
    raise AssertionError(life.app.services.attention.mode)


async def waiting(life: Life, posts: int) -> None:
    """Once the status tells of so many posts."""
    for _ in range(2000):
        if (await life.app.status_report.gather())["pendingNotifications"] == posts:
            return
        await asyncio.sleep(0.01)
    raise AssertionError((await life.app.status_report.gather())["pendingNotifications"])


def mention(world: World, who: str) -> None:
    world.network.post_as(world.account(who), "@rowan.test which tile would you choose?")


async def test_mentions_are_read_while_the_owner_waits_for_a_slow_answer(world: World) -> None:
    world.mind_faults.arm(HANGS)
    async with awake(world.make_home("rowan")) as life, going_on(life.app.owner.answer("Are you there?")):
        await busy_with(life, "owner")
        mention(world, "kit")
        async with going_on(life.app.scheduler.run_guarded("awareness")):
            await waiting(life, 1)
            mention(world, "ana")
            async with asyncio.timeout(HANG_S):
                while not (await life.app.scheduler.run_guarded("notifications")).ran:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            await waiting(life, 2)
            assert life.app.services.attention.mode == "owner"
        assert (await life.app.status_report.gather())["ownerMessages"] == 1


async def test_mentions_are_read_while_another_one_is_being_met(world: World) -> None:
    world.mind_faults.arm(HANGS)
    home = world.make_home("rowan")
    mention(world, "kit")
    async with awake(home) as life, going_on(life.app.scheduler.run_guarded("awareness")):
        await busy_with(life, "awareness")
        mention(world, "ana")
        assert (await life.app.scheduler.run_guarded("notifications")).reason == "1 new notification read"
        await waiting(life, 2)


async def test_the_owner_is_answered_between_two_mentions_and_not_after_all_of_them(world: World) -> None:
    order: list[str] = []
    home = world.make_home("rowan")
    for who in ("kit", "ana"):
        mention(world, who)
    answer = world.mind.answer

    async with awake(home) as life:
        asked: list[asyncio.Task[str]] = []

        def first_the_owner_speaks(request: ChatRequest) -> Completion:
            order.append("owner" if "Are you there?" in request.messages[-1].text else "mention")
            if not asked:
                asked.append(asyncio.ensure_future(life.app.owner.answer("Are you there?")))
            return answer(request)

        world.mind.answer = first_the_owner_speaks
        await life.app.scheduler.run_guarded("awareness")
        await asked[0]
    assert order[:3] == ["mention", "owner", "mention"]


async def test_nothing_is_read_twice_where_nothing_is_being_met(world: World) -> None:
    async with awake(world.make_home("rowan")) as life:
        assert not (await life.app.scheduler.run_guarded("notifications")).ran
