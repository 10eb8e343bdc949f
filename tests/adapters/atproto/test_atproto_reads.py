"""Tests of reading feeds, threads, notifications and handles from a running network."""

import pytest

from adapters.atproto.client import Atproto
from adapters.atproto.types import ReplyRefs, StrongRef, ThreadNode
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok
from town.atproto.service import Fault

pytestmark = pytest.mark.asyncio(loop_scope="session")

THREAD = "app.bsky.feed.getPostThread"


async def chain(client: Atproto, length: int) -> list[StrongRef]:
    """Post a thread in which each post answers the one before, and return references to its posts."""
    posts = [ok(await client.create_post("0"))]
    for number in range(1, length):
        refs = ReplyRefs(parent=posts[-1], root=posts[0])
        posts.append(ok(await client.create_post(str(number), refs)))
    return posts


async def test_feeds_come_in_pages_and_tell_reposts_apart(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    posts = await chain(bob, 2)
    ok(await alice.follow_user(bob.did))
    ok(await alice.repost(posts[0].uri, posts[0].cid))
    first = ok(await alice.get_timeline(limit=2))
    assert first.items[0].reposted_by
    assert first.items[0].reposted_by.did == alice.did
    rest = ok(await alice.get_timeline(limit=2, cursor=first.cursor))
    assert [item.reposted_by for item in (*first.items[1:], *rest.items)] == [None, None]
    unanswered = ok(await alice.get_author_feed("bob.test", filter="posts_no_replies"))
    assert [item.post.uri for item in unanswered.items] == [posts[0].uri]


@pytest.mark.parametrize("limit", [0, 101])
async def test_a_limit_out_of_bounds_is_brought_within(town: AtprotoTown, limit: int) -> None:
    alice = await town.logged_in("alice")
    ok(await alice.get_timeline(limit=limit))


async def test_notifications_can_be_narrowed_and_marked_as_seen(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    post = ok(await alice.create_post("hello"))
    ok(await bob.like_post(post.uri, post.cid))
    ok(await bob.create_post("hi @alice.test"))
    everything = ok(await alice.get_notifications())
    assert sorted(notification.kind for notification in everything.notifications) == ["like", "mention"]
    (like,) = ok(await alice.get_notifications(reasons=["like"])).notifications
    assert (like.reason_subject, like.is_read) == (post.uri, False)
    await town.clock.advance(1)
    ok(await alice.update_seen_notifications())
    seen = ok(await alice.get_notifications(limit=1))
    assert seen.notifications[0].is_read
    assert seen.seen_at


async def test_a_very_deep_thread_is_read_as_far_as_can_be(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    uris = [town.network.post_as(alice.did, "0")[0]]
    for number in range(1, 120):
        uris.append(town.network.post_as(alice.did, str(number), reply_to_uri=uris[-1])[0])
    last: ThreadNode | None = ok(await alice.get_post_thread(uris[-1], parent_height=1000))
    above = 0
    while last := last.parent if last else None:
        above += 1
    assert above == 119
    node, below = ok(await alice.get_post_thread(uris[0], depth=1000)), 0
    while node.replies:
        node, below = node.replies[0], below + 1
    assert below == 80


async def test_a_thread_whose_post_is_gone_is_not_found(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    post = ok(await alice.create_post("hello"))
    ok(await alice.delete_post(post.uri))
    assert err(await alice.get_post_thread(post.uri)).kind == "not_found"


async def test_records_come_raw_and_in_pages(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    posts = await chain(alice, 3)
    first = ok(await alice.list_records("app.bsky.feed.post", limit=2))
    rest = ok(await alice.list_records("app.bsky.feed.post", limit=2, cursor=first.cursor))
    assert [record.uri for record in (*first.items, *rest.items)] == [post.uri for post in reversed(posts)]
    assert first.items[0].value["text"] == "2"


@pytest.mark.parametrize("uri", ["https://x.example", "at://did:plc:a/app.bsky.feed.post"])
async def test_what_is_no_address_of_a_record_is_not_asked_for(town: AtprotoTown, uri: str) -> None:
    alice = await town.logged_in("alice")
    assert err(await alice.get_record(uri)).kind == "invalid"


async def test_handles_are_remembered_for_a_day(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    assert ok(await alice.resolve_handle("Bob.test")) == town.did("bob")
    assert ok(await alice.resolve_handle("carol.test")) == town.did("carol")
    town.faults.arm(Fault("server_error", times=99))
    assert ok(await alice.resolve_handle("bob.test")) == town.did("bob")
    assert ok(await alice.resolve_handle("carol.test")) == town.did("carol")
    await town.clock.advance(24 * 3600)
    assert not (await alice.resolve_handle("bob.test")).success
