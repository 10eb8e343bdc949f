"""No bot's rhythm: what leaves is looked at by the moments at which the service got it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from common.clock import parse_iso
from common.intervals import Pace
from modules.services.outbox.bodies import DeleteBody, FollowBody
from modules.services.outbox.departures import expected
from modules.services.outbox.types import ACTS_PER_TICK, Pacing, ProposedAction
from tests.modules.services.outbox.running_outbox import DID, RunningOutbox, like, open_running_outbox, post, reply
from tests.outbox_rows import newest_intents

TICK_S = 45


@pytest.fixture
async def paced(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as running_outbox:
        running_outbox.pacing = Pacing.of(Pace())
        await running_outbox.restart()
        yield running_outbox


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


async def departures(paced: RunningOutbox, *actions: ProposedAction) -> list[datetime]:
    """Propose all at once, let time go by until all have left, and return when each did, in order."""
    for action in actions:
        submitted = await paced.outbox.submit(action)
        assert submitted.accepted, submitted.reason
    while (report := await paced.outbox.deliver_due()).next_in_s is not None:
        await paced.clock.advance(max(report.next_in_s, 0.001))
    intents = await newest_intents(paced.outbox, len(actions))
    assert {intent.state for intent in intents} == {"done"}
    return sorted(parse_iso(intent.sent_at) for intent in intents if intent.sent_at)


async def test_like_reply_and_follow_never_leave_within_one_breath(paced: RunningOutbox) -> None:
    follow = ProposedAction(FollowBody(did="did:plc:ada"))
    moments = await departures(paced, like(thread(1)), reply(thread(1), "Tin."), follow, post("Slate."))
    assert all(later - earlier >= timedelta(seconds=10) for earlier, later in pairwise(moments))


async def test_an_hour_lies_between_two_unfollows_also_across_a_restart(paced: RunningOutbox) -> None:
    follows = [f"at://{DID}/app.bsky.graph.follow/{number}" for number in range(3)]
    for uri in follows:
        assert (await paced.outbox.submit(ProposedAction(DeleteBody(uri=uri)))).accepted
    await paced.outbox.deliver_due()
    await paced.restart()
    moments = await departures(paced, ProposedAction(DeleteBody(uri=f"at://{DID}/app.bsky.feed.post/1")))
    left = [parse_iso(intent.sent_at) for intent in await newest_intents(paced.outbox, 4) if intent.sent_at]
    post_gone = moments[0]
    unfollowed = sorted(moment for moment in left if moment != post_gone)
    assert len(unfollowed) == len(follows)
    assert post_gone - unfollowed[0] < timedelta(minutes=1)
    assert all(later - earlier >= timedelta(hours=1) for earlier, later in pairwise(unfollowed))


async def test_even_answers_to_the_owner_leave_with_a_breath_between_them(paced: RunningOutbox) -> None:
    urgent = [reply(thread(number), f"Answer number {number}.", urgent=True) for number in range(5)]
    moments = await departures(paced, like(thread(9)), *urgent)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]
    assert all(gap >= 2 for gap in gaps)
    assert sum(gap < 10 for gap in gaps) == 4


async def test_what_the_owner_orders_or_approves_does_not_wait_for_the_pace_and_the_wait_of_all_else_is_told(
    paced: RunningOutbox,
) -> None:
    followed = await departures(paced, ProposedAction(FollowBody(did="did:plc:owner")), post("Slate."))
    own = (await paced.outbox.submit(post("Chalk."))).intent
    draft = (await paced.outbox.submit(replace(post("Flint."), hold="drafts"))).intent
    ordered = await paced.outbox.submit(ProposedAction(FollowBody(did="did:plc:kit"), by_owner=True))
    await paced.outbox.approve(draft.id)
    await paced.drain(60)
    left = {one.id: one.state for one in await newest_intents(paced.outbox, 4)}
    assert (left[ordered.intent.id], left[draft.id], left[own.id]) == ("done", "done", "pending")
    departure = (await paced.database.run(expected))[own.id]
    assert "after the last post" in departure.reason
    await paced.clock.advance((parse_iso(departure.at) - paced.clock.now()).total_seconds() - 5)
    assert (await paced.deliver(own.id)).state == "pending"
    await paced.clock.advance(6)
    assert (await paced.deliver(own.id)).state == "done"
    assert await paced.database.run(expected) == {}
    assert parse_iso(departure.at) - followed[-1] > timedelta(minutes=30)


async def test_an_act_behind_others_of_its_kind_is_told_to_leave_after_them(paced: RunningOutbox) -> None:
    waits = [(await paced.outbox.submit(post(text))).wait for text in ("Slate.", "Chalk.", "Flint.")]
    assert [round(wait.seconds / 60) for wait in waits] == [0, 30, 60]
    assert "before it" in waits[-1].reason


async def test_at_most_three_acts_leave_within_a_tick(paced: RunningOutbox) -> None:
    follows = [ProposedAction(FollowBody(did=f"did:plc:{number}")) for number in range(2)]
    acts = [one for number in range(4) for one in (like(thread(number)), reply(thread(number), f"Answer {number}."))]
    moments = await departures(paced, *follows, *acts, post("Slate."))
    for first, fourth in zip(moments, moments[ACTS_PER_TICK:], strict=False):
        assert fourth - first >= timedelta(seconds=TICK_S)


async def test_none_of_those_that_wait_overtakes_another(paced: RunningOutbox) -> None:
    said = [f"Answer {number}." for number in range(12)]
    moments = await departures(paced, *(reply(thread(number), text) for number, text in enumerate(said)))
    intents = sorted(await newest_intents(paced.outbox, 12), key=lambda one: one.sent_at or "")
    assert [one.body.public_text for one in intents] == said
    assert moments[-1] - moments[0] < timedelta(seconds=11 * 76)


@pytest.mark.slow
async def test_no_second_of_the_minute_is_kept(paced: RunningOutbox) -> None:
    moments = await departures(paced, *(reply(thread(number), f"Answer {number}.") for number in range(60)))
    seconds = Counter(moment.second for moment in moments)
    gaps = {round((later - earlier).total_seconds(), 1) for earlier, later in pairwise(moments)}
    assert len(seconds) >= 20
    assert max(seconds.values()) <= 10
    assert len(gaps) >= 30
    assert min(gaps) >= 60
    assert max(gaps) <= 76
