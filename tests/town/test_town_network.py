"""The network from within: what a page about it reads, how it follows along, and how time stands still."""

from __future__ import annotations

from collections.abc import Callable

from common.clock import FakeClock
from town.atproto.index import POST, PROFILE, NetworkEvent
from town.atproto.network import Network

Member = Callable[[str], str]


def test_the_same_handle_has_the_same_did_in_every_network(clock: FakeClock) -> None:
    dids = {Network(clock=clock).create_account("mara.test", "pw").did for _ in range(2)}
    assert len(dids) == 1


def test_a_post_as_someone_has_facets_for_those_who_are_here(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    uri, _ = network.post_as(mara, "é @odo.test and @stranger.test, https://example.com/a")
    record = network.index.posts[uri].value
    spans = [(f["index"]["byteStart"], f["index"]["byteEnd"]) for f in record["facets"]]
    assert spans == [(3, 12), (33, 54)]
    assert record["facets"][0]["features"][0]["did"] == odo
    assert [notice.kind for notice in network.index.notices(odo)] == ["mention"]
    assert network.posts()[0].links == ("https://example.com/a",)


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
