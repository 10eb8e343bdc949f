"""Tests of finding posts and people, and of reading feeds, lists, starter packs and trends."""

import pytest

from adapters.atproto.records import parse_curated
from adapters.atproto.types import Trend
from common.clock import iso
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok

FEED, LIST, PACK = "app.bsky.feed.generator", "app.bsky.graph.list", "app.bsky.graph.starterpack"


def make(town: AtprotoTown, who: str, collection: str, rkey: str = "", **fields: object) -> str:
    record = {"createdAt": iso(town.clock.now()), **fields}
    town.network.create(town.did(who), collection, record, rkey=rkey or None)
    return town.network.records(town.did(who), collection)[0].uri


@pytest.mark.asyncio(loop_scope="session")
async def test_what_others_made_is_read_as_they_describe_it(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), town.did("bob")
    feed = make(town, "bob", FEED, "moss", did="did:web:feeds.test", displayName="Moss", description="on roofs")
    listed = make(town, "bob", LIST, name="roofers", purpose="app.bsky.graph.defs#curatelist")
    make(town, "bob", "app.bsky.graph.listitem", list=listed, subject=town.did("carol"))
    pack = make(town, "bob", PACK, name="roofs", description="all", list=listed, feeds=[{"uri": feed}])
    uri, _ = town.network.post_as(town.did("carol"), "Moss grows north #moss")
    described = ok(await alice.get_feed_generator(feed))
    assert (described.uri, described.name, described.description) == (feed, "Moss", "on roofs")
    assert [item.post.uri for item in ok(await alice.get_feed(feed)).items] == [uri]
    assert [item.post.uri for item in ok(await alice.get_list_feed(listed)).items] == [uri]
    shown = ok(await alice.get_list(listed))
    assert (shown.name, shown.creator.did, [one.handle for one in shown.members]) == ("roofers", bob, ["carol.test"])
    started = ok(await alice.get_starter_pack(pack))
    assert (started.name, started.description, started.list_uri) == ("roofs", "all", listed)
    assert [one.name for one in started.feeds] == ["Moss"]
    assert [one.handle for one in started.members] == ["carol.test"]
    [trend] = ok(await alice.get_trends())
    assert trend == Trend("moss", "/profile/bob.test/feed/moss", 1, trend.started_at)
    assert parse_curated(trend.link) is not None
    assert err(await alice.get_list(f"{listed}x")).kind == "not_found"


@pytest.mark.asyncio(loop_scope="session")
async def test_posts_and_people_are_found(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    uris = [town.network.post_as(town.did(name), f"moss by {name}")[0] for name in ("bob", "carol")]
    found = ok(await alice.search_posts("moss", limit=1))
    assert ([item.post.uri for item in found.items], bool(found.cursor)) == ([uris[1]], True)
    narrowed = ok(await alice.search_posts("moss", author="bob.test", since="2020-01-01"))
    assert [item.post.uri for item in narrowed.items] == [uris[0]]
    assert [one.handle for one in ok(await alice.search_actors("carol"))] == ["carol.test"]
    assert ok(await alice.search_posts("moss", language="nl")).items == ()


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        ("https://bsky.app/profile/bob.test/feed/moss", f"at://bob.test/{FEED}/moss"),
        ("bsky.app/profile/did:plc:x/lists/3k2a?ref=1", ""),
        ("bsky.app/profile/did:plc:x/lists/3k2a", f"at://did:plc:x/{LIST}/3k2a"),
        ("/profile/bob.test/feed/moss/", f"at://bob.test/{FEED}/moss"),
        ("https://bsky.app/starter-pack/bob.test/3k2a", f"at://bob.test/{PACK}/3k2a"),
        (f"at://did:plc:x/{FEED}/moss", f"at://did:plc:x/{FEED}/moss"),
        ("at://did:plc:x/app.bsky.feed.post/3k2a", ""),
        ("https://evil.test/profile/bob.test/feed/moss", ""),
        ("https://bsky.app/profile/bob.test/post/3k2a", ""),
    ],
)
def test_a_link_to_a_feed_a_list_or_a_starter_pack_is_its_address(address: str, uri: str) -> None:
    found = parse_curated(address)
    assert (found.uri if found else "") == uri
