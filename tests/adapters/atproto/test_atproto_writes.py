"""Tests of writes to a running network: what arrives, and that a write repeated under its key is done only once.

A write can be held back right before it leaves, while reading goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.atproto.client import Atproto
from adapters.atproto.records import THREADGATE
from adapters.atproto.types import PostImage, ReplyRefs, ServiceErr, StrongRef
from adapters.atproto.writes import is_tid, tid_for
from common.clock import FakeClock
from common.result import ApiResult
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok
from tests.loopback import to_loopback
from tests.patience import until, while_time_passes
from town.atproto.index import FOLLOW, LIKE, POST, PROFILE, REPOST
from town.atproto.service import Fault, FaultKind

pytestmark = pytest.mark.asyncio(loop_scope="session")


PUT = "com.atproto.repo.putRecord"
MOMENT = datetime(2026, 1, 5, 11, 59, 30, 123000, tzinfo=UTC)
Act = Callable[[Atproto, StrongRef, str], Awaitable[ApiResult[StrongRef]]]


async def posted(client: Atproto, text: str = "hello") -> StrongRef:
    return ok(await client.create_post(text))


async def test_a_post_arrives_with_its_facets_language_and_a_fresh_key(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    ref = await posted(alice, "hi @bob.test and @nobody.test, see https://example.com/x #fun")
    record = ok(await alice.get_record(ref.uri))
    assert record
    assert record.cid == ref.cid
    assert record.value["langs"] == ["en"]
    facets = record.value["facets"]
    assert isinstance(facets, list)
    assert [facet["features"][0]["$type"].split("#")[1] for facet in facets] == ["mention", "link", "tag"]
    assert is_tid(ref.uri.rsplit("/", 1)[1])
    (mention,) = ok(await bob.get_notifications(reasons=["mention"])).notifications
    assert (mention.uri, mention.kind, mention.author.did) == (ref.uri, "mention", alice.did)
    assert mention.links == ("https://example.com/x",)


async def test_each_call_without_a_key_is_a_new_act(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    assert (await posted(alice)).uri != (await posted(alice)).uri


ACTS: list[tuple[str, Act]] = [
    (POST, lambda client, _, key: client.create_post("once", rkey=key, created_at=MOMENT)),
    (LIKE, lambda client, on, key: client.like_post(on.uri, on.cid, rkey=key, created_at=MOMENT)),
    (REPOST, lambda client, on, key: client.repost(on.uri, on.cid, rkey=key, created_at=MOMENT)),
    (FOLLOW, lambda client, on, key: client.follow_user(on.uri.split("/")[2], rkey=key, created_at=MOMENT)),
]


@pytest.mark.parametrize(("collection", "act"), ACTS, ids=[name for name, _ in ACTS])
@pytest.mark.parametrize("kind", ["lost_answer", "server_error"])
async def test_an_act_of_unknown_outcome_repeated_under_its_key_is_done_exactly_once(
    town: AtprotoTown, collection: str, act: Act, kind: FaultKind
) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    target, key = await posted(bob), tid_for(MOMENT, "intent-1")
    town.faults.arm(Fault(kind, PUT))
    assert err(await act(alice, target, key)).kind == "unknown_outcome"
    before = ok(await alice.get_record(f"at://{alice.did}/{collection}/{key}"))
    assert (before is not None) is (kind == "lost_answer")
    first, second = ok(await act(alice, target, key)), ok(await act(alice, target, key))
    assert first == second
    assert len(ok(await alice.list_records(collection)).items) == 1


async def test_a_reply_hangs_where_it_was_told_to(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    root = await posted(alice)
    reply = ok(await bob.create_post("yes", ReplyRefs(root, root)))
    (found,) = ok(await alice.get_post_thread(root.uri, depth=1)).replies
    assert (found.post.uri, found.post.root_uri) == (reply.uri, root.uri)


async def test_an_uploaded_image_is_shown_with_its_description(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    blob = ok(await alice.upload_blob(b"\x89PNG", "image/png"))
    ok(await alice.create_post("", images=[PostImage(blob, "a dot", 1, 1)]))
    (item,) = ok(await alice.get_author_feed("alice.test")).items
    assert item.post.has_media


@pytest.mark.parametrize("who", ["bob.test", "did"])
async def test_a_link_to_a_post_becomes_a_quote_and_stays_a_link(town: AtprotoTown, who: str) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    quoted = await posted(bob)
    rkey = quoted.uri.rsplit("/", 1)[1]
    actor = bob.did if who == "did" else who
    ref = await posted(alice, f"see https://bsky.app/profile/{actor}/post/{rkey}")
    record = ok(await alice.get_record(ref.uri))
    assert record
    assert record.value["embed"] == {"$type": "app.bsky.embed.record", "record": {"uri": quoted.uri, "cid": quoted.cid}}
    assert "facets" in record.value


async def test_a_link_to_a_post_that_is_not_there_is_only_a_link(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    ref = await posted(alice, "see https://bsky.app/profile/bob.test/post/3jzfcijpj2z2a")
    record = ok(await alice.get_record(ref.uri))
    assert record
    assert "embed" not in record.value


async def test_a_text_that_greets_a_crowd_resolves_only_so_many_handles(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    town.faults.arm(Fault("bad_request", "com.atproto.identity.resolveHandle", times=20))
    await posted(alice, " ".join(f"@x{number}.test" for number in range(20)))
    assert town.faults.armed[0].times == 10


async def test_a_post_does_not_leave_without_a_mention_that_cannot_be_resolved_now(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    town.faults.arm(Fault("server_error", "com.atproto.identity.resolveHandle"))
    assert err(await alice.create_post("hi @bob.test")).kind == "transient"
    await posted(alice, "hi @bob.test")
    assert len(ok(await bob.get_notifications(reasons=["mention"])).notifications) == 1


async def test_replies_hidden_elsewhere_stay_hidden_whoever_may_reply(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    post = (await posted(alice)).uri
    key, hidden = post.rpartition("/")[2], [f"at://{town.did('bob')}/{POST}/3jzfcijpj2z2a"]
    ok(await alice.allow_replies(post, ["mentioned"]))
    gate = town.network.record(alice.did, THREADGATE, key)
    assert gate
    town.network.put(alice.did, THREADGATE, key, gate.value | {"hiddenReplies": hidden})
    for replies in ((), None):
        ok(await alice.allow_replies(post, replies))
        stored = ok(await alice.get_record(f"at://{alice.did}/{THREADGATE}/{key}"))
        assert stored
        assert stored.value["hiddenReplies"] == hidden
        assert ok(await alice.allowed_replies(post)) == replies


@pytest.mark.parametrize("text", ["x" * 301, "", "half \ud83d"])
async def test_a_text_that_the_network_would_refuse_does_not_leave(town: AtprotoTown, text: str) -> None:
    alice = await town.logged_in("alice")
    town.faults.arm(Fault("server_error"))
    assert err(await alice.create_post(text)).kind == "invalid"


@pytest.mark.parametrize(("uri", "cid"), [("https://x.example", "cid"), ("at://did:plc:b/app.bsky.feed.post/3k", "")])
async def test_only_posts_can_be_liked(town: AtprotoTown, uri: str, cid: str) -> None:
    alice = await town.logged_in("alice")
    assert err(await alice.like_post(uri, cid)).kind == "invalid"


async def test_what_is_deleted_is_gone_and_deleting_it_again_is_no_error(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    ref = await posted(alice)
    assert ok(await alice.delete_post(ref.uri)) is None
    assert ok(await alice.delete_post(ref.uri)) is None
    assert ok(await alice.get_record(ref.uri)) is None


async def test_an_unfollow_takes_the_follow_back(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    follow = ok(await alice.follow_user(town.did("bob")))
    assert [actor.handle for actor in ok(await alice.get_follows("alice.test")).items] == ["bob.test"]
    ok(await alice.delete_post(follow.uri))
    assert ok(await alice.get_followers("bob.test")).items == ()


async def test_records_of_others_cannot_be_deleted(town: AtprotoTown) -> None:
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    ref = await posted(bob)
    assert err(await alice.delete_post(ref.uri)).kind == "invalid"
    assert ok(await bob.get_record(ref.uri))


async def test_the_own_profile_is_replaced_only_as_it_was_read(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    address = f"at://{alice.did}/{PROFILE}/self"
    stands = ok(await alice.get_record(address))
    assert stands
    changed = ok(
        await alice.put_own_record(PROFILE, {**stands.value, "description": "hi", "x-mine": {"a": 1}}, swap=stands.cid)
    )
    again = ok(await alice.get_record(address))
    assert again
    assert again.cid == changed.cid
    assert again.value == {**stands.value, "description": "hi", "x-mine": {"a": 1}}
    for stale in (stands.cid, None):
        refused = err(await alice.put_own_record(PROFILE, {"description": "stale"}, swap=stale))
        assert isinstance(refused, ServiceErr)
        assert (refused.name, refused.kind) == ("InvalidSwap", "invalid")


async def test_an_account_without_a_profile_record_gets_one(town: AtprotoTown) -> None:
    account = town.network.create_account("dora.test", "dora-pass")
    dora = await town.logged_in("dora")
    made = ok(await dora.put_own_record(PROFILE, {"displayName": "Dora"}, swap=None))
    assert made.uri == f"at://{account.did}/{PROFILE}/self"
    assert (await dora.get_profile(dora.did)) == (await dora.get_profile("dora.test"))
    assert ok(await dora.get_profile(dora.did)).display_name == "Dora"


RKEY = "3jzfcijpj2z2a"


def client(town: AtprotoTown, folder: Path, clock: FakeClock, reasons: list[str]) -> Atproto:
    made = Atproto(
        transport=to_loopback,
        service_url=town.url,
        identifier="alice.test",
        password="alice-pass",
        session_path=folder / "held-back.json",
        clock=clock,
        min_spacing_s=0,
        write_block_reason=lambda: "; ".join(reasons),
    )
    town.clients.append(made)
    return made


async def test_what_is_held_back_does_not_leave_and_nothing_else_is(town: AtprotoTown, tmp_path: Path) -> None:
    reasons = ["paused"]
    alice = client(town, tmp_path, town.clock, reasons)
    ok(await alice.authenticate())
    refused = err(await alice.create_post("not now", rkey=RKEY, created_at=town.clock.now()))
    assert (refused.error, refused.kind) == ("paused", "transient")
    assert town.network.posts() == []
    ok(await alice.get_timeline())
    ok(await alice.update_seen_notifications())
    reasons.clear()
    ok(await alice.create_post("now", rkey=RKEY, created_at=town.clock.now()))
    assert [post.text for post in town.network.posts()] == ["now"]


async def test_a_write_that_the_service_made_wait_is_held_back_when_its_time_comes(
    town: AtprotoTown, tmp_path: Path
) -> None:
    reasons: list[str] = []
    alice = client(town, tmp_path, town.clock, reasons)
    ok(await alice.authenticate())
    town.faults.arm(Fault("rate_limited", PUT, seconds=120))
    writing = asyncio.create_task(alice.create_post("later", rkey=RKEY, created_at=town.clock.now()))
    await until(lambda: town.clock._sleepers, what="the wait that the service asks for")
    reasons.append("paused meanwhile")
    refused = err(await while_time_passes(town.clock, writing))
    assert (refused.error, refused.kind) == ("paused meanwhile", "transient")
    assert town.network.posts() == []
