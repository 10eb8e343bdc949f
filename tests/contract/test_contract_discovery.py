"""Finding posts and people, feeds, lists, starter packs and trends.

Bluesky's own software answers searches with filters, feeds and trends only where further services run beside it.
"""

from __future__ import annotations

from typing import Any

import pytest
from atproto import client_utils, models

from tests.contract.conftest import TOWN_SECRET
from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import CREATE, NOW, PROFILE, R

FEED, LIST, LIST_ITEM = "app.bsky.feed.generator", "app.bsky.graph.list", "app.bsky.graph.listitem"
PACK = "app.bsky.graph.starterpack"


def make(network: UnderTest, author: Person, collection: str, **fields: Any) -> str:
    body = {"repo": author.did, "collection": collection, "record": {"$type": collection, "createdAt": NOW, **fields}}
    return str(network.post(CREATE, body, author.token).raise_for_status().json()["uri"])


def make_list(network: UnderTest, maker: Person, *members: Person) -> str:
    uri = make(network, maker, LIST, name="roofers", purpose=f"{LIST.removesuffix('list')}defs#curatelist")
    for member in members:
        make(network, maker, LIST_ITEM, list=uri, subject=member.did)
    network.settle()
    return uri


@pytest.fixture
def town_alone(network_under_test: UnderTest) -> UnderTest:
    if network_under_test.jwt_secret != TOWN_SECRET:
        pytest.skip("needs services beside the server that are not installed")
    return network_under_test


def test_a_list_shows_its_members_and_what_they_posted(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    uri = make_list(network_under_test, alice, bob, carol)
    make(network_under_test, bob, LIST_ITEM, list=uri, subject=bob.did)  # nobody adds to a list of somebody else's
    alice.post("mine")
    theirs = [bob.post("from bob"), carol.post("from carol")]
    network_under_test.settle()
    shown = alice.client.app.bsky.graph.get_list({"list": uri})
    assert (shown.list.name, shown.list.creator.did, shown.list.list_item_count) == ("roofers", alice.did, 2)
    assert [item.subject.did for item in shown.items] == [carol.did, bob.did]
    page = alice.client.app.bsky.feed.get_list_feed({"list": uri})
    assert [line.post.uri for line in page.feed] == [post.uri for post in reversed(theirs)]
    nowhere = refusal(network_under_test.get("app.bsky.feed.getListFeed", alice.token, list=f"{uri}x"))
    assert nowhere[:2] == (400, "UnknownList")


def test_whom_a_reader_muted_or_blocked_stands_in_no_feed_of_theirs(
    network_under_test: UnderTest, alice: Person, bob: Person, carol: Person
) -> None:
    uri = make_list(network_under_test, alice, bob, carol)
    bob.post("from bob")
    carol.post("from carol")
    alice.client.mute(bob.did)
    make(network_under_test, carol, "app.bsky.graph.block", subject=alice.did)
    network_under_test.settle()
    assert alice.client.app.bsky.feed.get_list_feed({"list": uri}).feed == []


def test_a_starter_pack_shows_its_list_and_some_of_its_accounts(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    uri = make_list(network_under_test, alice, bob)
    pack = make(network_under_test, alice, PACK, name="roofs", description="who knows them", list=uri)
    network_under_test.settle()
    shown = bob.client.app.bsky.graph.get_starter_pack({"starter_pack": pack}).starter_pack
    record: Any = shown.record
    assert (record.name, shown.creator.did, shown.list.uri) == ("roofs", alice.did, uri)
    assert [item.subject.did for item in shown.list_items_sample] == [bob.did]


def test_an_account_is_found_by_its_handle_and_by_its_name(
    network_under_test: UnderTest, alice: Person, bob: Person
) -> None:
    name = f"zq{alice.handle.partition('.')[0]}"
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE, "displayName": name}}
    network_under_test.post(f"{R}putRecord", body, alice.token).raise_for_status()
    network_under_test.settle()
    for term in (name, alice.handle):
        found = bob.client.app.bsky.actor.search_actors({"q": term}).actors
        assert alice.did in [one.did for one in found]


def test_a_search_can_be_narrowed(town_alone: UnderTest, alice: Person, bob: Person) -> None:
    word = f"zq{alice.handle.partition('.')[0]}"
    alice.post(f"Old moss, {word}", langs=["en"])
    bob.post(f"{word} mos", langs=["nl"])
    liked = alice.post(f"{word} again", langs=["en"])
    bob.client.like(liked.uri, liked.cid)

    def found(**params: Any) -> list[str]:
        query = {"q": word, **params}
        return [post.record.text for post in alice.client.app.bsky.feed.search_posts(query).posts]

    assert found(lang="nl") == found(author=bob.handle) == [f"{word} mos"]
    assert found(sort="top")[0] == f"{word} again"
    assert found(q=f"moss {word}") == [f"Old moss, {word}"]
    assert len(found(since="2020-01-31")) == len(found(until="2999-01-01")) == 3
    assert found(since="2999-01-01") == found(until="2020-01-01") == []


def test_a_feed_shows_its_posts_and_who_makes_it_and_a_trend_leads_there(
    town_alone: UnderTest, alice: Person, bob: Person
) -> None:
    tag = f"zq{alice.handle.partition('.')[0]}"
    record = {"$type": FEED, "createdAt": NOW, "did": "did:web:feeds.test", "displayName": "Moss"}
    body = {"repo": alice.did, "collection": FEED, "rkey": tag, "record": record}
    uri = town_alone.post(CREATE, body, alice.token).raise_for_status().json()["uri"]
    post = bob.post(client_utils.TextBuilder().text("on the roof: ").tag(f"#{tag}", tag))
    alice.post(f"no{tag}")
    view = bob.client.app.bsky.feed.get_feed_generator({"feed": uri}).view
    assert (view.display_name, view.creator.did) == ("Moss", alice.did)
    assert [line.post.uri for line in bob.client.app.bsky.feed.get_feed({"feed": uri}).feed] == [post.uri]
    params = models.AppBskyUnspeccedGetTrends.Params(limit=25)
    trends = {trend.topic: trend for trend in bob.client.app.bsky.unspecced.get_trends(params).trends}
    assert trends[tag].link == f"/profile/{alice.handle}/feed/{tag}"
    assert [actor.did for actor in trends[tag].actors] == [bob.did]
    gone = refusal(town_alone.get("app.bsky.feed.getFeed", bob.token, feed=f"{uri}x"))
    assert gone == (400, "InvalidRequest", "could not find feed")
