"""What of the commitments deserves attention: what is due, and what keeps failing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.services.agent.attention_list import Item
from modules.services.commitments.due import DueCommitments
from modules.services.commitments.queue import CommitmentQueue
from tests.modules.services.commitments.commitment_values import taken


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_what_is_still_to_be_kept_deserves_attention_until_it_has_no_sense(
    tmp_path: Path, clock: FakeClock
) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    kept, waits = taken(queue, "One"), taken(queue, "Two", title="The second")
    queue.mark_completed(kept.id, {"issues": [], "count": 0})
    attention = await DueCommitments(queue.live, queue.get_commitment_outcome_patterns)()
    assert attention.commitments == (Item("The second", "pending", clock.now() + timedelta(days=1)),)
    assert waits.status == "pending"


async def test_what_failed_more_than_once_this_week_deserves_attention(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    for number in range(2):
        one = taken(queue, f"Write {number} down")
        queue.mark_in_progress(one.id)
        queue.mark_failed(one.id, "Not Found")
    source = DueCommitments(queue.live, queue.get_commitment_outcome_patterns)
    (failing,) = (await source()).failing
    assert (failing.what, failing.count) == ("create_issue", 2)
    await clock.advance(timedelta(days=8).total_seconds())
    assert (await source()).failing == ()
