"""The network from within: what a page about it reads, how it follows along, and how time stands still."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.clock import FakeClock, iso
from town.atproto.network import Network
from town.atproto.values import LIKE, POST, PROFILE, NetworkEvent, XrpcError

Member = Callable[[str], str]


def like(network: Network, did: str, uri: str, cid: str) -> str:
    record = {"subject": {"uri": uri, "cid": cid}, "createdAt": iso(network.clock.now())}
    return network.create(did, LIKE, record).record.uri


def test_the_same_handle_has_the_same_did_in_every_network(clock: FakeClock) -> None:
    dids = {Network(clock=clock).create_account("mara.test", "pw").did for _ in range(2)}
    assert len(dids) == 1


def test_posts_are_read_newest_first_even_while_the_clock_stands(network: Network, member: Member) -> None:
    mara = member("mara")
    for number in range(5):
        network.post_as(mara, f"post {number}")
    assert [post.text for post in network.posts()] == [f"post {n}" for n in (4, 3, 2, 1, 0)]
    assert [post.text for post in network.posts(limit=2)] == ["post 4", "post 3"]
    keys = [record.at.rkey for record in network.records(mara, POST)]
    assert keys == sorted(keys, reverse=True)
    assert len(set(keys)) == 5


def test_a_post_as_someone_has_facets_for_those_who_are_here(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    uri, _ = network.post_as(mara, "é @odo.test and @stranger.test, https://example.com/a")
    record = network.index.posts[uri].value
    spans = [(f["index"]["byteStart"], f["index"]["byteEnd"]) for f in record["facets"]]
    assert spans == [(3, 12), (33, 54)]
    assert record["facets"][0]["features"][0]["did"] == odo
    assert [notice.kind for notice in network.index.notices(odo)] == ["mention"]
    assert network.posts()[0].links == ("https://example.com/a",)


def test_a_reply_as_someone_hangs_in_its_thread(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    root, _ = network.post_as(mara, "root")
    first, _ = network.post_as(odo, "first", reply_to_uri=root)
    second, _ = network.post_as(mara, "second", reply_to_uri=first)
    network.post_as(odo, "also", reply_to_uri=root)
    tree = network.thread(second)
    assert tree
    assert tree.post.uri == root
    assert [node.post.text for node in tree.replies] == ["first", "also"]
    assert tree.replies[0].replies[0].post.root_uri == root
    assert tree.post.reply_count == 2
    with pytest.raises(XrpcError, match="Post not found"):
        network.post_as(odo, "to nothing", reply_to_uri="at://did:plc:x/app.bsky.feed.post/y")
    assert network.thread("at://did:plc:x/app.bsky.feed.post/y") is None


def test_a_thread_without_its_root_begins_at_the_topmost_post_that_stands(network: Network, member: Member) -> None:
    mara = member("mara")
    root, _ = network.post_as(mara, "root")
    first, _ = network.post_as(mara, "first", reply_to_uri=root)
    second, _ = network.post_as(mara, "second", reply_to_uri=first)
    assert network.delete(mara, POST, root.rsplit("/", 1)[1])
    tree = network.thread(second)
    assert tree
    assert (tree.post.uri, tree.replies[0].post.uri) == (first, second)


def test_listeners_hear_each_change_until_they_leave(network: Network) -> None:
    received: list[NetworkEvent] = []
    leave = network.subscribe(received.append)
    did = network.create_account("mara.test", "pw").did
    uri, cid = network.post_as(did, "hello")
    network.put(did, PROFILE, "self", {"displayName": "M"})
    network.put(did, PROFILE, "self", {"displayName": "M"})
    network.put(did, PROFILE, "self", {"displayName": "Mara"})
    network.delete(did, POST, uri.rsplit("/", 1)[1])
    assert not network.delete(did, POST, uri.rsplit("/", 1)[1])
    leave()
    network.post_as(did, "unheard")
    assert [event.kind for event in received] == ["account", "created", "created", "updated", "deleted"]
    assert received[1] == NetworkEvent("created", did, uri, POST, cid)


def test_what_happens_in_the_same_millisecond_after_a_marking_is_unread(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    network.post_as(odo, "@mara.test before")
    network.mark_seen(mara, network.clock.now())
    network.post_as(odo, "@mara.test after")
    seen = network.seen(mara)
    assert seen
    unread = [n.record.value["text"] for n in network.index.notices(mara) if n.record.order > seen]
    assert unread == ["@mara.test after"]


def test_a_second_like_counts_again_once_the_first_is_taken_back(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    uri, cid = network.post_as(mara, "like me")
    first, second = like(network, odo, uri, cid), like(network, odo, uri, cid)
    for standing, taken_back in ((1, first), (0, second)):
        network.delete(odo, LIKE, taken_back.rsplit("/", 1)[1])
        assert network.index.likes.count(uri) == standing


def test_an_avatar_without_a_record_is_the_one_the_account_was_made_with(network: Network) -> None:
    did = network.create_account("mara.test", "pw", avatar="http://127.0.0.1/mara.svg").did
    assert network.actor(did).avatar == "http://127.0.0.1/mara.svg"
