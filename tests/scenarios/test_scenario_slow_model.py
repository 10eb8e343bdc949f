"""A slow model blocks no reading: the SOUL goes on reading while it thinks, and the status shows what waits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.owner_lines import answered
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake
from town.model.service import Fault
from town.model.types import ChatRequest, Completion

HANGS = Fault("hang", times=1000, seconds=600)


@asynccontextmanager
async def going_on(work: Awaitable[object]) -> AsyncIterator[None]:
    """Run `work` in the background and cancel it at the end."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def busy_with(life: RunningSoul, what: str) -> None:
    await until(lambda: life.app.services.attention.mode == what, what=f"being busy with {what}")


async def waiting(life: RunningSoul, posts: int) -> None:
    """Wait until the status shows `posts` waiting posts."""

    async def told() -> bool:
        return bool((await life.app.services.situation()).waits.posts == posts)

    await until(told)


async def read(life: RunningSoul) -> None:
    """Wait until the loop that reads has run."""

    async def ran() -> bool:
        return (await life.app.scheduler.run_guarded("notifications")).ran

    await until(ran)


def mention(running_town: RunningTown, who: str) -> None:
    running_town.network.post_as(running_town.account(who), "@rowan.test which tile would you choose?")


async def test_mentions_are_read_while_the_owner_waits_for_a_slow_answer(running_town: RunningTown) -> None:
    running_town.mind_faults.arm(HANGS)
    async with awake(running_town.make_home("rowan")) as life, going_on(answered(life.app.owner, "Are you there?")):
        await busy_with(life, "owner")
        mention(running_town, "kit")
        async with going_on(life.app.scheduler.run_guarded("awareness")):
            await waiting(life, 1)
            mention(running_town, "ana")
            await read(life)
            await waiting(life, 2)
            assert life.app.services.attention.mode == "owner"
        assert (await life.app.services.situation()).waits.owner_messages == 1


@pytest.mark.slow
async def test_the_owner_is_answered_between_two_mentions_and_not_after_all_of_them(running_town: RunningTown) -> None:
    order: list[str] = []
    home = running_town.make_home("rowan")
    for who in ("kit", "ana"):
        mention(running_town, who)
    answer = running_town.mind.answer

    async with awake(home) as life:
        asked: list[asyncio.Task[str]] = []

        def first_the_owner_speaks(request: ChatRequest) -> Completion:
            order.append("owner" if "Are you there?" in request.messages[-1].text else "mention")
            if not asked:
                asked.append(asyncio.ensure_future(answered(life.app.owner, "Are you there?")))
            return answer(request)

        running_town.mind.answer = first_the_owner_speaks
        await life.app.scheduler.run_guarded("awareness")
        await asked[0]
    assert order[:3] == ["mention", "owner", "mention"]
