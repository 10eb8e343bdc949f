"""An account's own labels go wherever the account is shown, so that whoever reads it knows a bot without asking."""

from __future__ import annotations

from typing import Any

from tests.contract.people import Person, UnderTest
from tests.contract.wire import PROFILE, R

LABELS = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "bot"}]}


def own(view: Any) -> list[tuple[str, str]]:
    return [(label.val, label.src) for label in view.labels or ()]


def test_a_bot_is_labelled_in_every_view_of_it(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE, "labels": LABELS}}
    network_under_test.post(f"{R}putRecord", body, alice.token).raise_for_status()
    network_under_test.settle()
    post = bob.post("question")
    alice.reply("answer", post)
    alice.client.follow(bob.did)
    network_under_test.settle()
    bot = [("bot", alice.did)]
    assert own(carol.client.get_profile(alice.did)) == bot
    (told,) = bob.notifications(reasons=["reply"])
    assert own(told.author) == bot
    (reply,) = bob.client.get_post_thread(post.uri).thread.replies
    assert own(reply.post.author) == bot
    (line, *_) = carol.client.get_author_feed(alice.did).feed
    assert own(line.post.author) == bot
    (follower,) = carol.client.get_followers(bob.did).followers
    assert own(follower) == bot
    assert own(carol.client.get_post_thread(post.uri).thread.post.author) == []


def test_a_profile_is_replaced_only_as_it_was_read(network_under_test: UnderTest, alice: Person) -> None:
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE}, "swapRecord": None}
    made = network_under_test.post(f"{R}putRecord", body, alice.token).raise_for_status().json()
    changed = {**body, "record": {"$type": PROFILE, "labels": LABELS}}
    stale = network_under_test.post(f"{R}putRecord", changed, alice.token)
    assert (stale.status_code, stale.json()["error"]) == (400, "InvalidSwap")
    fresh = network_under_test.post(f"{R}putRecord", {**changed, "swapRecord": made["cid"]}, alice.token)
    assert fresh.status_code == 200
