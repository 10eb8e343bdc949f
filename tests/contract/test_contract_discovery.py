"""Tests of finding posts and people, and of feeds, lists, starter packs and trends.

Bluesky's own software answers searches with filters, feeds and trends only where further services run beside it.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from atproto import client_utils, models
from pydantic import BaseModel

from adapters.atproto.client import Atproto
from common.clock import SystemClock
from tests.adapters.results import err, ok
from tests.contract.conftest import TOWN_SECRET
from tests.contract.people import Person, UnderTest, refusal
from tests.contract.wire import CREATE, NOW, PROFILE, R
from tests.loopback import to_loopback

FEED, LIST, LIST_ITEM = "app.bsky.feed.generator", "app.bsky.graph.list", "app.bsky.graph.listitem"
PACK = "app.bsky.graph.starterpack"


def make(network: UnderTest, author: Person, collection: str, **fields: Any) -> str:
    body = {"repo": author.did, "collection": collection, "record": {"$type": collection, "createdAt": NOW, **fields}}
    return str(network.post(CREATE, body, author.token).raise_for_status().json()["uri"])


def make_list(network: UnderTest, maker: Person, *members: Person) -> str:
    uri = make(network, maker, LIST, name="roofers", purpose=f"{LIST.removesuffix('list')}defs#curatelist")
    for second, member in enumerate(members):
        at = NOW.replace(":00.", f":{second:02}.")
        make(network, maker, LIST_ITEM, list=uri, subject=member.did, createdAt=at)
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
    make(network_under_test, bob, LIST_ITEM, list=uri, subject=bob.did)  # without effect: the list is alice's
    alice.post("mine")
    theirs = [bob.post("from bob"), carol.post("from carol")]
    network_under_test.settle()
    shown = alice.client.app.bsky.graph.get_list({"list": uri})
    assert (shown.list.name, shown.list.creator.did, shown.list.list_item_count) == ("roofers", alice.did, 2)
    assert [item.subject.did for item in shown.items] == [carol.did, bob.did]
    page = alice.client.app.bsky.feed.get_list_feed({"list": uri})
    assert [line.post.uri for line in page.feed] == [post.uri for post in reversed(theirs)]
    assert alice.client.app.bsky.feed.get_list_feed({"list": f"{uri}x"}).feed == []


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


def test_an_account_is_found_by_its_handle(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    found = bob.client.app.bsky.actor.search_actors({"q": alice.handle}).actors
    assert [one.did for one in found] == [alice.did]


def test_an_account_is_found_by_its_name(town_alone: UnderTest, alice: Person, bob: Person) -> None:
    name = f"zq{alice.handle.partition('.')[0]}"
    body = {"repo": alice.did, "collection": PROFILE, "rkey": "self", "record": {"$type": PROFILE, "displayName": name}}
    town_alone.post(f"{R}putRecord", body, alice.token).raise_for_status()
    town_alone.settle()
    found = bob.client.app.bsky.actor.search_actors({"q": name}).actors
    assert [one.did for one in found] == [alice.did]


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


def make_feed(network: UnderTest, maker: Person, tag: str) -> str:
    record = {"$type": FEED, "createdAt": NOW, "did": network.feeds_did, "displayName": "Moss"}
    body = {"repo": maker.did, "collection": FEED, "rkey": tag, "record": record}
    uri = str(network.post(CREATE, body, maker.token).raise_for_status().json()["uri"])
    network.settle()
    network.announce(uri)
    return uri


def test_what_is_not_there_is_refused(network_under_test: UnderTest, alice: Person) -> None:
    uris = {collection: f"at://{alice.did}/{collection}/nowhere" for collection in (FEED, LIST, PACK)}
    for nsid, param, collection, name, message in (
        ("app.bsky.feed.getFeed", "feed", FEED, "RecordNotFound", f"Could not locate record: {uris[FEED]}"),
        ("app.bsky.feed.getFeedGenerator", "feed", FEED, "InvalidRequest", "could not find feed"),
        ("app.bsky.graph.getList", "list", LIST, "InvalidRequest", "List not found"),
        ("app.bsky.graph.getStarterPack", "starterPack", PACK, "InvalidRequest", "Starter pack not found"),
    ):
        refused = refusal(network_under_test.get(nsid, alice.token, **{param: uris[collection]}))
        assert refused == (400, name, message)


def test_a_feed_shows_its_posts_and_who_makes_it(network_under_test: UnderTest, alice: Person, bob: Person) -> None:
    tag = f"zq{alice.handle.partition('.')[0]}"
    uri = make_feed(network_under_test, alice, tag)
    post = bob.post(client_utils.TextBuilder().text("on the roof: ").tag(f"#{tag}", tag))
    alice.post(f"no{tag}")
    shown = bob.client.app.bsky.feed.get_feed_generator({"feed": uri})
    assert (shown.view.display_name, shown.view.creator.did) == ("Moss", alice.did)
    assert (shown.is_online, shown.is_valid) == (True, True)
    assert [line.post.uri for line in bob.client.app.bsky.feed.get_feed({"feed": uri}).feed] == [post.uri]


def test_a_trend_leads_to_its_feed(town_alone: UnderTest, alice: Person, bob: Person) -> None:
    tag = f"zq{alice.handle.partition('.')[0]}"
    make_feed(town_alone, alice, tag)
    bob.post(client_utils.TextBuilder().text("on the roof: ").tag(f"#{tag}", tag))
    params = models.AppBskyUnspeccedGetTrends.Params(limit=25)
    trends = {trend.topic: trend for trend in bob.client.app.bsky.unspecced.get_trends(params).trends}
    assert trends[tag].link == f"/profile/{alice.handle}/feed/{tag}"
    assert [actor.did for actor in trends[tag].actors] == [bob.did]


@dataclass(frozen=True)
class Gathered:
    """What alice made from bob's and carol's accounts, and the post that bob wrote; all of it has the word `tag`."""

    tag: str
    feed: str
    list: str
    pack: str
    post: str
    bob: Person
    carol: Person


@pytest.fixture
def gathered(network_under_test: UnderTest, alice: Person, bob: Person, carol: Person) -> Gathered:
    tag = f"zq{alice.handle.partition('.')[0]}"
    profile = {"$type": PROFILE, "displayName": tag, "description": "reads roofs"}
    body = {"repo": bob.did, "collection": PROFILE, "rkey": "self", "record": profile}
    network_under_test.post(f"{R}putRecord", body, bob.token).raise_for_status()
    members, feed = make_list(network_under_test, alice, bob, carol), make_feed(network_under_test, alice, tag)
    pack = make(network_under_test, alice, PACK, name=tag, list=members, feeds=[{"uri": feed}])
    alice.client.follow(bob.did)
    post = bob.post(client_utils.TextBuilder().text("on the roof: ").tag(f"#{tag}", tag), langs=["en"])
    return Gathered(tag, feed, members, pack, post.uri, bob, carol)


def unknown(shown: Any) -> set[str]:
    """Return the fields of an answer that its lexicon does not have."""
    if isinstance(shown, list):
        return {name for one in shown for name in unknown(one)}
    if not isinstance(shown, BaseModel):
        return set()
    parts = {name for field in type(shown).model_fields for name in unknown(getattr(shown, field))}
    return parts | {f"{type(shown).__module__}.{name}" for name in shown.model_extra or {}}


def test_what_is_found_has_the_fields_of_its_lexicon_and_no_others(
    network_under_test: UnderTest, alice: Person, gathered: Gathered
) -> None:
    feed, graph, actor = alice.client.app.bsky.feed, alice.client.app.bsky.graph, alice.client.app.bsky.actor
    shown = [
        feed.search_posts({"q": gathered.tag}),
        actor.search_actors({"q": gathered.tag}),
        feed.get_timeline({}),
        feed.get_feed({"feed": gathered.feed}),
        feed.get_feed_generator({"feed": gathered.feed}),
        feed.get_list_feed({"list": gathered.list}),
        graph.get_list({"list": gathered.list}),
        graph.get_starter_pack({"starter_pack": gathered.pack}),
    ]
    if network_under_test.jwt_secret == TOWN_SECRET:
        shown.append(alice.client.app.bsky.unspecced.get_trends(models.AppBskyUnspeccedGetTrends.Params(limit=25)))
    assert unknown(shown) == set()
    assert "no lexicon has it" in {*unknown(type(shown[0]).model_validate({"posts": [], "no lexicon has it": 1}))}.pop()


def test_a_soul_reads_it(network_under_test: UnderTest, alice: Person, gathered: Gathered, tmp_path: Path) -> None:
    bob, carol = gathered.bob, gathered.carol
    reader = Atproto(
        transport=to_loopback,
        service_url=network_under_test.url,
        identifier=alice.handle,
        password=alice.password,
        session_path=tmp_path / "session.json",
        clock=SystemClock(),
        min_spacing_s=0,
    )

    async def read() -> None:
        ok(await reader.authenticate())
        pages = [
            await reader.search_posts(gathered.tag, author=bob.handle, language="en", since="2020-01-31"),
            await reader.get_timeline(),
            await reader.get_feed(gathered.feed),
            await reader.get_list_feed(gathered.list),
        ]
        for page in map(ok, pages):
            assert [item.post.uri for item in page.items] == [gathered.post]
            assert page.items[0].post.author.did == bob.did
        [found] = ok(await reader.search_actors(bob.handle))
        assert (found.did, found.display_name, found.description) == (bob.did, gathered.tag, "reads roofs")
        listed, pack = ok(await reader.get_list(gathered.list)), ok(await reader.get_starter_pack(gathered.pack))
        assert (listed.name, pack.name, pack.list_uri) == ("roofers", gathered.tag, gathered.list)
        for made in (listed, pack):
            assert made.creator.did == alice.did
            assert {one.did for one in made.members} == {bob.did, carol.did}
        feed = ok(await reader.get_feed_generator(gathered.feed))
        assert (feed.name, feed.creator.did) == ("Moss", alice.did)
        assert [one.uri for one in pack.feeds] == [gathered.feed]
        assert err(await reader.get_feed(f"{gathered.feed}x")).kind in {"invalid", "not_found"}
        await reader.aclose()

    asyncio.run(read())
