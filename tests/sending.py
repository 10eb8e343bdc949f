"""Sends the intents of an outbox, for tests whose SOUL runs no loops."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from modules.services.outbox.outbox import Outbox
from tests.patience import until

_EVER_S = 1e9
T = TypeVar("T")


async def sends(outbox: Outbox) -> None:
    """Send all accepted intents until cancelled."""
    while True:
        report = await outbox.deliver_due()
        await outbox.wait_for_work(_EVER_S if report.next_in_s is None else report.next_in_s)


async def while_it_sends(outbox: Outbox, call: Awaitable[T]) -> T:
    """Return the result of a call that waits for its intents to be sent; then send what is still due."""
    running = asyncio.ensure_future(call)

    async def is_over() -> bool:
        await outbox.deliver_due()
        return running.done()

    await until(is_over, what="an end of the call")
    while (await outbox.deliver_due()).done:
        continue
    return running.result()
