"""What is to leave later waits for its moment, leaves then once, and can be taken back before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from common.errors import NotWaiting
from modules.services.outbox import approval
from modules.services.outbox.policy import MOST_SCHEDULED, SCHEDULE_AHEAD
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.types import TrustCircle
from modules.services.outbox.types import ProposedAction, Submitted
from tests.modules.services.outbox.running_outbox import RunningOutbox, post

DAY = timedelta(days=1)
NOBODY = TrustCircle(own=set(), owner=set(), peers=set())


def later(running_outbox: RunningOutbox, text: str, after: timedelta = DAY) -> ProposedAction:
    return replace(post(text), by_owner=True, urgent=True, scheduled_for=running_outbox.clock.now() + after)


async def schedule(running_outbox: RunningOutbox, text: str = "Tides.", after: timedelta = DAY) -> Submitted:
    return await running_outbox.outbox.submit(later(running_outbox, text, after))


@pytest.mark.parametrize("dies", [False, True])
async def test_it_leaves_at_its_moment_and_once_also_over_a_restart(
    running_outbox: RunningOutbox, *, dies: bool
) -> None:
    intent = (await schedule(running_outbox)).intent
    report = await running_outbox.outbox.deliver_due()
    assert report.next_in_s == DAY.total_seconds()
    await running_outbox.clock.advance(DAY.total_seconds() - 1)
    await running_outbox.restart()
    assert (await running_outbox.deliver(intent.id)).state == "pending"
    assert running_outbox.service.writes == []
    await running_outbox.clock.advance(1)
    if dies:
        await running_outbox.die_while_sending()
    await running_outbox.drain(600)
    assert (await running_outbox.deliver(intent.id)).state == "done"
    assert running_outbox.service.writes == [intent.rkey]


@pytest.mark.parametrize(("late_s", "state"), [(-5, "done"), (5, "expired")])
async def test_its_expiry_counts_from_its_moment(running_outbox: RunningOutbox, late_s: float, state: str) -> None:
    intent = (await schedule(running_outbox)).intent
    await running_outbox.clock.advance(2 * DAY.total_seconds() + late_s)
    assert (await running_outbox.deliver(intent.id)).state == state


@pytest.mark.parametrize("after", [timedelta(), SCHEDULE_AHEAD + timedelta(minutes=1)])
async def test_a_moment_that_has_passed_or_is_far_ahead_is_refused(
    running_outbox: RunningOutbox, after: timedelta
) -> None:
    refused = await schedule(running_outbox, after=after)
    assert not refused.accepted
    assert "moment" in refused.reason


async def test_no_more_than_so_many_wait_and_one_that_is_taken_back_makes_room(running_outbox: RunningOutbox) -> None:
    kept = [await schedule(running_outbox, f"Tide {number}.") for number in range(MOST_SCHEDULED)]
    assert not (await schedule(running_outbox, "One more.")).accepted
    await running_outbox.outbox.reject(kept[0].intent.id)
    assert (await schedule(running_outbox, "One more.")).accepted
    await running_outbox.drain(DAY.total_seconds() + 7200, step_s=3600)
    assert len(running_outbox.service.writes) == MOST_SCHEDULED
    assert kept[0].intent.rkey not in running_outbox.service.writes


async def test_a_post_that_leaves_now_is_not_said_to_leave_after_one_whose_moment_is_ahead(
    running_outbox: RunningOutbox,
) -> None:
    await schedule(running_outbox)
    assert (await running_outbox.outbox.submit(post("Ebb."))).wait.seconds == 0


async def test_it_is_listed_with_what_waits_and_needs_no_yes(running_outbox: RunningOutbox) -> None:
    draft = (await running_outbox.outbox.submit(replace(post("Held."), hold="drafts"))).intent
    second, first = [(await schedule(running_outbox, f"Day {days}.", days * DAY)).intent for days in (2, 1)]
    listed = await running_outbox.database.run(approval.waiting)
    assert [one.id for one in listed] == [draft.id, first.id, second.id]
    assert [one.id for one in await running_outbox.outbox.held()] == [draft.id]
    with pytest.raises(NotWaiting):
        await running_outbox.outbox.approve(first.id)


async def test_with_drafts_what_has_its_own_words_waits_for_a_yes_and_then_for_its_moment(
    running_outbox: RunningOutbox,
) -> None:
    rule = ApprovalRule("drafts", lambda: NOBODY)
    running_outbox.rules, running_outbox.at_departure = [rule], [rule.at_departure]
    await running_outbox.restart()
    given = await running_outbox.outbox.submit(later(running_outbox, "Given."))
    unseen = await running_outbox.outbox.submit(replace(later(running_outbox, "Its own."), own_words=True))
    assert (given.advice.code, unseen.advice.code) == ("admitted", "held")
    await running_outbox.outbox.approve(unseen.intent.id)
    await running_outbox.drain(600)
    assert running_outbox.service.writes == []
    await running_outbox.clock.advance(DAY.total_seconds())
    await running_outbox.drain(600)
    assert sorted(running_outbox.service.writes) == sorted([given.intent.rkey, unseen.intent.rkey])


async def test_what_was_scheduled_unseen_waits_for_a_yes_once_the_owner_wants_drafts(
    running_outbox: RunningOutbox,
) -> None:
    intent = (await running_outbox.outbox.submit(replace(later(running_outbox, "Its own."), own_words=True))).intent
    running_outbox.at_departure = [ApprovalRule("drafts", lambda: NOBODY).at_departure]
    await running_outbox.restart()
    await running_outbox.clock.advance(DAY.total_seconds())
    held = await running_outbox.deliver(intent.id)
    assert (held.state, held.scheduled_for) == ("held", intent.scheduled_for)
    assert running_outbox.service.writes == []
