"""The way in: what is accepted, what is refused and why, and that nothing slips through between look and leap."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import datetime

import pytest

from common.clock import iso, parse_iso
from common.constants import FEED_KEYS_MAX
from common.errors import PolicyBlocked
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import ProposedAction, Verdict
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.outbox_house import DID, House, like, post, reply

A, B = "at://did:plc:ada/app.bsky.feed.post/1", "at://did:plc:ada/app.bsky.feed.post/2"


async def test_an_accepted_draft_is_a_row_before_anything_else(house: House) -> None:
    submitted = await house.outbox.submit(reply(A, "hello"))
    assert submitted.accepted
    assert submitted.intent.state == "pending"
    assert submitted.intent.target == A
    assert submitted.intent.created_at == iso(house.clock.now())
    assert house.service.writes == []
    await house.restart()
    assert await house.outbox.get(submitted.intent.id) == submitted.intent


@pytest.mark.parametrize("first", ["pending", "done"])
@pytest.mark.parametrize("kind", ["reply", "like", "repost", "follow", "delete"])
async def test_the_same_is_never_done_twice_to_one_target(house: House, kind: IntentKind, first: str) -> None:
    draft = ProposedAction(body_of(kind, A))
    accepted = await house.outbox.submit(draft)
    if first == "done":
        await house.deliver(accepted.intent.id)
    await house.restart()
    refused = await house.outbox.submit(draft)
    assert not refused.accepted
    assert refused.reason == f"Already {'done' if first == 'done' else 'on its way'}: {kind} to {A}"
    assert (await house.outbox.submit(ProposedAction(body_of(kind, B, text="Tin sings.")))).accepted


async def test_a_refusal_is_a_row_and_a_line_with_its_reason(house: House) -> None:
    await house.outbox.submit(reply(A, "hello"))
    refused = await house.outbox.submit(reply(A, "other words"))
    stored = await house.outbox.get(refused.intent.id)
    assert stored is not None
    assert (stored.state, stored.error) == ("blocked", refused.reason)
    assert f"Blocked reply: other words | {refused.reason}" in house.messages()


async def test_the_same_words_within_five_minutes_are_a_near_duplicate(house: House) -> None:
    await house.outbox.submit(reply(A, "Look at https://x.example/1"))
    await house.clock.advance(42)
    refused = await house.outbox.submit(post("@ada.example  LOOK at https://x.example/1"))
    assert refused.reason == "Near-duplicate of post sent 42s ago"


async def test_words_that_wait_longer_than_the_window_still_hold_their_place(house: House) -> None:
    await house.outbox.submit(post("slow words"))
    await house.clock.advance(600)
    refused = await house.outbox.submit(post("slow words"))
    assert refused.reason == "Near-duplicate of a post that waits to be sent"


async def test_words_that_were_sent_stay_in_the_feed_set(house: House) -> None:
    accepted = await house.outbox.submit(post("said once"))
    await house.deliver(accepted.intent.id)
    await house.clock.advance(86_400)
    await house.restart()
    refused = await house.outbox.submit(post("Said once"))
    assert refused.reason == "Duplicate of post already in feed"


async def test_texts_that_differ_in_link_or_image_are_different(house: House) -> None:
    drafts = [
        post("done: https://x.example/1"),
        post("done: https://x.example/2"),
        post("", "img-1"),
        post("", "img-2"),
    ]
    assert [(await house.outbox.submit(draft)).accepted for draft in drafts] == [True] * 4
    assert not (await house.outbox.submit(post("", "img-1"))).accepted


async def test_likes_carry_no_words_and_never_count_as_duplicates(house: House) -> None:
    assert (await house.outbox.submit(like(A))).accepted
    assert (await house.outbox.submit(like(B))).accepted


async def test_a_feed_warms_the_memory_with_our_own_posts_only(house: House) -> None:
    own, others = f"at://{DID}/app.bsky.feed.post/9", "at://did:plc:ada/app.bsky.feed.post/9"
    items = [(own, "Old Words"), (others, "foreign words"), (own, "   ")]
    assert await house.outbox.warm_up_from_feed(items) == 1
    assert await house.outbox.warm_up_from_feed(items) == 0
    assert (await house.outbox.submit(post("old words"))).reason == "Duplicate of post already in feed"
    assert (await house.outbox.submit(post("foreign words"))).accepted


async def test_the_feed_set_forgets_the_oldest_above_its_cap(house: House) -> None:
    items = [(f"at://{DID}/app.bsky.feed.post/{number}", f"words {number}") for number in range(FEED_KEYS_MAX + 2)]
    await house.outbox.warm_up_from_feed(items)
    newest_first = [(await house.outbox.submit(post(f"words {number}"))).accepted for number in (0, FEED_KEYS_MAX - 1)]
    oldest = [
        (await house.outbox.submit(post(f"words {number}"))).accepted for number in (FEED_KEYS_MAX, FEED_KEYS_MAX + 1)
    ]
    assert (newest_first, oldest) == ([False, False], [True, True])


async def test_what_failed_or_expired_frees_its_words_and_its_target(house: House) -> None:
    house.service.faults.append("nonsense")
    failed = await house.outbox.submit(reply(A, "first try"))
    assert (await house.deliver(failed.intent.id)).state == "failed"
    again = await house.outbox.submit(reply(A, "first try"))
    assert again.accepted
    await house.clock.advance(6 * 3600)
    assert (await house.deliver(again.intent.id)).state == "expired"
    assert (await house.outbox.submit(reply(A, "first try"))).accepted


async def test_parallel_submissions_of_one_act_let_exactly_one_through(house: House) -> None:
    replies = await asyncio.gather(*(house.outbox.submit(reply(A, f"words {number}")) for number in range(10)))
    posts = await asyncio.gather(*(house.outbox.submit(post("the same")) for _ in range(10)))
    assert [sum(one.accepted for one in some) for some in (replies, posts)] == [1, 1]
    assert await house.outbox.counts() == {"pending": 2, "blocked": 18}


async def test_intents_of_one_moment_get_different_keys_in_order(house: House) -> None:
    intents = [(await house.outbox.submit(like(f"at://x/{number}"))).intent for number in range(20)]
    assert [one.rkey for one in intents] == sorted({one.rkey for one in intents})
    assert len({one.created_at for one in intents}) == 20
    house.clock.jump(-1)
    await house.clock.advance(1)
    late = (await house.outbox.submit(like("at://x/late"))).intent
    assert late.rkey not in {one.rkey for one in intents}
    assert abs((parse_iso(late.created_at) - house.clock.now()).total_seconds()) < 0.1


async def test_rules_say_no_with_their_own_words_and_an_exception_of_policy_is_a_no(house: House) -> None:
    def no_strangers(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> list[Verdict]:
        return [Verdict("consent", "block", "a stranger")] if draft.target == A else []

    def no_shouting(_: sqlite3.Connection, draft: ProposedAction, __: datetime) -> list[Verdict]:
        if draft.text.isupper():
            raise PolicyBlocked("no shouting")
        return []

    house.rules = (no_strangers, no_shouting)
    await house.restart()
    outcomes = [await house.outbox.submit(draft) for draft in (reply(A, "hi"), post("LOUD"), post("fine"))]
    assert [(one.accepted, one.reason) for one in outcomes] == [
        (False, "a stranger"),
        (False, "no shouting"),
        (True, ""),
    ]


async def test_intents_are_found_by_cause_target_and_age(house: House) -> None:
    first = (await house.outbox.submit(reply(A, "one"))).intent
    await house.clock.advance(5)
    second = (await house.outbox.submit(like(A))).intent
    third = (await house.outbox.submit(like(B))).intent
    assert await house.outbox.by_cause(A) == [second, first]
    assert await house.outbox.by_target("like", B) == [third]
    assert await house.outbox.recent(2) == [third, second]
    assert await house.outbox.get("nobody") is None


async def test_the_last_post_counts_from_acceptance_until_it_left(house: House) -> None:
    assert await house.outbox.last_done_or_accepted("post") is None
    accepted = await house.outbox.submit(post("one"))
    born = house.clock.now()
    assert await house.outbox.last_done_or_accepted("post") == born
    await house.clock.advance(100)
    await house.deliver(accepted.intent.id)
    assert await house.outbox.last_done_or_accepted("post") == house.clock.now()
    assert not (await house.outbox.submit(post("one"))).accepted
    assert await house.outbox.last_done_or_accepted("post") == house.clock.now()


async def test_a_submission_wakes_who_waits_for_work(house: House) -> None:
    waiting = asyncio.create_task(house.outbox.wait_for_work(1000))
    await asyncio.sleep(0)
    await house.outbox.submit(post("wake up"))
    assert await waiting is True
    waiting = asyncio.create_task(house.outbox.wait_for_work(30))
    await house.clock.advance(30)
    assert await waiting is False


async def test_a_refused_draft_wakes_nobody(house: House) -> None:
    await house.outbox.submit(post("once"))
    await house.outbox.wait_for_work(0)
    await house.outbox.submit(post("once"))
    assert await house.outbox.wait_for_work(0) is False
