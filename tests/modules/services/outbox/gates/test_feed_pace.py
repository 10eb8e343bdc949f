"""The newest post on the account's own feed counts for the pace, also where the outbox does not know it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef
from common.clock import iso
from modules.services.outbox.gates.feed_pace import FeedPaceGate
from tests.modules.services.outbox.running_outbox import DID, NO_PACING, PACING, RunningOutbox, like, post, reply

URI = f"at://{DID}/app.bsky.feed.post/1"


def made(moment: datetime | None, *, reply_to: str = "") -> Post:
    ref = StrongRef(uri=reply_to, cid="cid")
    answers = ReplyRefs(parent=ref, root=ref) if reply_to else None
    return Post(URI, "cid", Actor(DID, "soul.test"), "Tin.", iso(moment) if moment else "of old", reply=answers)


async def behind(running_outbox: RunningOutbox, *shown: Post) -> FeedPaceGate:
    gate = FeedPaceGate(PACING.post_s)
    gate.note(shown)
    running_outbox.gates = (gate,)
    running_outbox.pacing = NO_PACING
    await running_outbox.restart()
    return gate


async def test_a_post_waits_for_what_is_left_of_the_pause_and_then_leaves(running_outbox: RunningOutbox) -> None:
    now = running_outbox.clock.now()
    newest = now - timedelta(seconds=600)
    await behind(running_outbox, made(newest - timedelta(days=1)), made(newest), made(now, reply_to=URI), made(None))
    await running_outbox.outbox.submit(post("words"))
    report = await running_outbox.outbox.deliver_due()
    assert (report.done, report.next_in_s) == (0, 1200)
    await running_outbox.clock.advance(1200)
    assert (await running_outbox.outbox.deliver_due()).done == 1


async def test_answers_likes_and_what_is_urgent_pass(running_outbox: RunningOutbox) -> None:
    await behind(running_outbox, made(running_outbox.clock.now()))
    for action in (reply("to this", URI), like(URI), replace(post("at once"), urgent=True)):
        await running_outbox.outbox.submit(action)
    assert (await running_outbox.outbox.deliver_due()).done == 3


async def test_a_feed_without_posts_and_a_post_from_the_future_keep_nothing_in(running_outbox: RunningOutbox) -> None:
    gate = await behind(running_outbox, made(running_outbox.clock.now() + timedelta(hours=5)))
    await running_outbox.outbox.submit(post("words"))
    assert (await running_outbox.outbox.deliver_due()).done == 1
    gate.note(())
    assert gate.newest is None
