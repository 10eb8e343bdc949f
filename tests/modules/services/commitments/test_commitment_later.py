"""An act that the outbox puts off makes its commitment wait: no try is used up, and nothing counts as failed."""

from datetime import timedelta

from common.clock import parse_iso
from modules.services.commitments.naming import QueuedCommitment
from modules.services.outbox.rules.counts import note
from modules.services.outbox.rules.rules import POINTS_PER_HOUR
from tests.modules.services.commitments.commitment_values import wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown


async def _with_the_hour_used_up(soul_in_town: SoulInTown) -> QueuedCommitment:
    """Make a commitment to post while all points of the hour are spent, and return it."""
    now = soul_in_town.clock.now()
    await soul_in_town.database.run(lambda rows: note(rows, now, "profile", points=POINTS_PER_HOUR.limit))
    one = await soul_in_town.enqueue(
        wanted("Tell them of the weir", kind="post_bluesky", content="The weir is open.", hostRequest=True)
    )
    await soul_in_town.live(5)
    return soul_in_town.status(one)


async def test_what_may_not_leave_yet_waits_without_a_try_and_is_done_when_it_may(soul_in_town: SoulInTown) -> None:
    one = await _with_the_hour_used_up(soul_in_town)
    assert (one.status, one.attempt_count, one.error) == ("pending", 0, None)
    assert one.not_before is not None
    assert parse_iso(one.not_before) > soul_in_town.clock.now()
    told = soul_in_town.told()
    assert any("A commitment waits: Tell them of the weir" in line and POINTS_PER_HOUR.name in line for line in told)
    assert not any("Not fulfilled yet" in line for line in told)
    await soul_in_town.live(3000, step_s=60)
    assert len(await soul_in_town.outbox.by_target("post", f"{one.id}#1")) == 1
    assert (soul_in_town.status(one).status, soul_in_town.status(one).attempt_count) == ("pending", 0)
    assert (await soul_in_town.queue.attention()).failing == ()
    await soul_in_town.live(1200, step_s=60)
    kept = soul_in_town.status(one)
    assert (kept.status, kept.attempt_count, kept.not_before) == ("completed", 1, None)
    assert [intent.body.public_text for intent in soul_in_town.bluesky.records.values()] == ["The weir is open."]


async def test_what_grew_stale_while_nothing_ran_is_tried_once_before_it_is_given_up(soul_in_town: SoulInTown) -> None:
    kept, hindered = [
        await soul_in_town.enqueue(
            wanted(f"Tell of {what}", kind="post_bluesky", content=what, hostRequest=True, undelivered=lost)
        )
        for what, lost in (("The weir is open.", False), ("The mill stands.", True))
    ]
    soul_in_town.clock.jump(timedelta(hours=25).total_seconds())
    await soul_in_town.restart()
    await soul_in_town.live(30)
    assert soul_in_town.status(kept).status == "completed"
    assert soul_in_town.status(hindered).status == "abandoned"


async def test_the_wait_outlives_a_crash(soul_in_town: SoulInTown) -> None:
    one = await _with_the_hour_used_up(soul_in_town)
    await soul_in_town.restart()
    assert soul_in_town.status(one) == one
    soul_in_town.clock.jump(timedelta(hours=2).total_seconds())
    await soul_in_town.live(10)
    assert soul_in_town.status(one).status == "completed"
