"""What ends the work on a task before it is done: the owner's word, and the loss of the claim."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from adapters.github.types import PullRequest, Repo
from common.clock import Clock
from modules.services.claims.offers import TASK, TaskOrders, TaskPlace, is_left, standing_of
from modules.services.plans.naming import parse_task_branch
from modules.services.work.loop import STOP_LOOK_S
from modules.services.workspaces.pulls import plan_of

T = TypeVar("T")


async def first_of(work: Coroutine[Any, Any, T], *watches: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns, or the first of the watches if one ends before; the others are cancelled.

    Returns once all of them have ended, with what they started.
    """
    tasks = [asyncio.create_task(one) for one in (work, *watches)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return await next(one for one in tasks if one.done())
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until_stopped(
    orders: TaskOrders, place: TaskPlace, is_ours: Callable[[], Awaitable[bool]], clock: Clock
) -> None:
    """Wait until the owner says to leave a task alone, or it is not ours any more.

    The row of the task is looked at every `STOP_LOOK_S` seconds. The plan is read by `is_ours` only where the cycle
    over the workspaces has kept there that the task stands differently.
    """
    known = None
    while True:
        row = await orders.table.get(TASK, place.row.key)
        if row is not None and is_left(row):
            return
        standing = standing_of(row) if row else None
        if standing != known and known is not None and not await is_ours():
            return
        known = standing
        await clock.sleep(STOP_LOOK_S)


def place_of_pull(repo: Repo, pull: PullRequest) -> TaskPlace | None:
    """Return the task that a pull request is for, by its branch and the plan that its text names; None without one."""
    issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
    return None if issue is None or number is None else TaskPlace(repo, issue, number)
