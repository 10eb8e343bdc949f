"""What ends the work on a task before it is done: the owner's word, and the loss of the claim."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from adapters.github.types import PullRequest, Repo
from common.clock import Clock
from modules.lives.tasks.offering import TaskStopped
from modules.lives.tasks.types import Deferred
from modules.services.claims.offers import TaskOrders, TaskPlace
from modules.services.plans.naming import parse_task_branch
from modules.services.work.loop import STOP_LOOK_S
from modules.services.workspaces.pulls import plan_of

T = TypeVar("T")

LOST_LOOK_S = 20.0
"""How often work that takes long reads whether it is still wanted. GitHub counts no request for what did not change."""


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


async def until_left(orders: TaskOrders, place: TaskPlace, clock: Clock) -> None:
    """Wait until the owner says to leave a task alone."""
    while not await orders.is_left(place):
        await clock.sleep(STOP_LOOK_S)


async def until_lost(is_ours: Callable[[], Awaitable[bool]], clock: Clock) -> None:
    """Wait until a task is not ours any more, which is read every `LOST_LOOK_S` seconds.

    A plan that cannot be read now is no reason to stop. Raises `TaskStopped` for one that is gone.
    """
    while True:
        await clock.sleep(LOST_LOOK_S)
        try:
            if not await is_ours():
                return
        except TaskStopped as stopped:
            if not isinstance(stopped.result, Deferred):
                raise


def place_of_pull(repo: Repo, pull: PullRequest) -> TaskPlace | None:
    """Return the task that a pull request is for, by its branch and the plan that its text names; None without one."""
    issue, number = plan_of(pull.body), parse_task_branch(pull.head.ref)
    return None if issue is None or number is None else TaskPlace(repo, issue, number)
