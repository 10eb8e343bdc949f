"""What of the commitments deserves attention: what is due, and what keeps failing."""

from __future__ import annotations

from datetime import timedelta

from common.clock import FakeClock
from modules.services.agent.attention_list import Item
from tests.modules.services.commitments.commitment_values import Opened, taken


async def test_what_is_still_to_be_kept_deserves_attention_until_it_has_no_sense(
    opened: Opened, clock: FakeClock
) -> None:
    queue = await opened()
    kept, waits = await taken(queue, "One"), await taken(queue, "Two", title="The second")
    await queue.mark_completed(kept.id, {"issues": [], "count": 0})
    attention = await queue.attention()
    assert attention.commitments == (Item("The second", "pending", clock.now() + timedelta(days=1)),)
    assert waits.status == "pending"


async def test_what_failed_more_than_once_this_week_deserves_attention(opened: Opened, clock: FakeClock) -> None:
    queue = await opened()
    for number in range(2):
        one = await taken(queue, f"Write {number} down")
        await queue.mark_in_progress(one.id)
        await queue.mark_failed(one.id, "Not Found")
    (failing,) = (await queue.attention()).failing
    assert (failing.what, failing.count) == ("create_issue", 2)
    await clock.advance(timedelta(days=8).total_seconds())
    assert (await queue.attention()).failing == ()
