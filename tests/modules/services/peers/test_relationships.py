"""The SOUL remembers whom it has met, within limits, and across restarts.

The identity post has one form, and a claim to a GitHub name is read only where one is made.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Actor, FeedItem, Notification, Post, ReplyRefs, StrongRef
from common.clock import FakeClock
from common.text.graphemes import grapheme_len
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.agent.attention_list import Insight, Reflection
from modules.services.peers.registry import (
    IDENTITY_POST_MARKER,
    build_identity_post_text,
    extract_github_username_from_text,
    find_identity_post,
    is_github_username,
    names_did,
)
from modules.services.relationships import Relationship, Relationships
from tests.modules.lives.bluesky.bluesky_values import START, at, did, notification, uri

ADA = "ada.example.social"

Opened = Callable[..., Awaitable[Relationships]]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Opened]:
    """Return a function that opens the store again as it is `days` after the start."""
    async with AsyncExitStack() as stack:

        async def opened(days: float = 0) -> Relationships:
            database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
            stack.push_async_callback(database.close)
            clock = FakeClock(START + timedelta(days=days))
            people = Relationships(tmp_path / "relationships.json", database, clock)
            await people.open()
            return people

        yield opened


async def met(people: Relationships, *notifications: Notification) -> Relationship:
    """Store interactions of one account; return its memory."""
    await people.record_interactions(notifications)
    known = await people.get(notifications[-1].author.did)
    assert known is not None
    return known


async def test_two_accounts_of_one_handle_are_two(store: Opened) -> None:
    people = await store()
    for name in ("ada", "bob"):
        item = notification(author=name, key=f"of-{name}")
        await met(people, replace(item, author=replace(item.author, handle="handle.invalid")))
    for name in ("ada", "bob"):
        found = await (await store()).get(did(name))
        assert found is not None
        assert [one.uri for one in found.interactions] == [uri(name, f"of-{name}")]


async def test_the_same_notification_counts_once(store: Opened) -> None:
    people = await store()
    await met(people, notification(key="n1"))
    await met(people, notification(key="n1"))
    known = await met(people, notification(key="n2", minutes=5))
    assert len(known.interactions) == 2
    assert known.first_seen == START
    assert known.last_interaction == START + timedelta(minutes=5)


async def test_only_the_newest_fifty_meetings_are_kept(store: Opened) -> None:
    people = await store()
    for index in range(60):
        known = await met(people, notification(key=f"n{index}", minutes=index))
    assert len(known.interactions) == 50
    assert known.interactions[0].uri == uri("ada", "n10")


async def test_who_wrote_and_follows_is_known_for_it_also_after_fifty_likes(store: Opened) -> None:
    people = await store()
    for index, kind in enumerate(["follow", *["reply"] * 12, *["like"] * 60]):
        await met(people, notification(key=f"n{index}", kind=kind, minutes=index))
        await people.mark_responded([uri("ada", "n1"), uri("ada", "n2")])
    known = await (await store()).get(did("ada"))
    assert known is not None
    assert (known.times_written, known.times_written_before(uri("ada", "n72")), known.exchanges) == (12, 12, 2)
    assert known.follows_us


@pytest.mark.parametrize(
    ("kinds", "sentiment"),
    [
        (["reply"] * 3, "unknown"),
        (["like"], "neutral"),
        (["like", "repost", "follow"], "positive"),
        (["like"] * 3 + ["reply"] * 7, "positive"),
        (["like"] * 3 + ["reply"] * 8, "neutral"),
    ],
)
async def test_likes_reposts_and_follows_of_late_make_the_feeling(
    store: Opened, kinds: list[str], sentiment: str
) -> None:
    people = await store()
    for index, kind in enumerate(kinds):
        known = await met(people, notification(key=f"n{index}", kind=kind, minutes=index))
    assert known.sentiment == sentiment


async def test_an_answer_of_ours_is_remembered_with_its_post(store: Opened) -> None:
    people = await store()
    await met(people, notification(key="n1"))
    await met(people, notification(key="n2"))
    await people.mark_responded({uri("ada", "n1")})
    known = await (await store()).get(did("ada"))
    assert known is not None
    assert known.responded
    assert [one.responded for one in known.interactions] == [True, False]


async def test_how_far_was_read_survives_and_never_moves_back(store: Opened) -> None:
    people = await store()
    assert people.seen_at is None
    exact = "2026-01-05T12:00:00.123456Z"
    people.advance_seen_at(exact)
    people.advance_seen_at("2026-01-05T12:00:00.123Z")
    people.advance_seen_at("2026-01-05T13:59:00+02:00")
    assert (await store()).seen_at == exact
    with pytest.raises(ValueError, match="soon"):
        people.advance_seen_at("soon")


@pytest.mark.parametrize(
    ("kinds", "days", "stays"),
    [
        (["reply"], 60, True),
        (["reply"], 60.1, False),
        (["like"] * 3, 60.1, True),
        (["reply"] * 5, 60.1, True),
        (["like"] * 5, 90.1, False),
    ],
)
async def test_who_stays_away_is_forgotten_friends_later(
    store: Opened, kinds: list[str], days: float, *, stays: bool
) -> None:
    people = await store()
    for index, kind in enumerate(kinds):
        await met(people, notification(key=f"n{index}", kind=kind))
    assert await (await store(days)).prune_stale() == (0 if stays else 1)
    assert (await (await store()).get(did("ada")) is not None) is stays


async def test_of_a_follower_who_stays_away_the_follow_is_kept(store: Opened) -> None:
    people = await store()
    for index, kind in enumerate(["follow", "reply", "like"]):
        await met(people, notification(key=f"n{index}", kind=kind))
    assert [await (await store(200)).prune_stale() for _ in range(2)] == [1, 0]
    known = await (await store(200)).get(did("ada"))
    assert known is not None
    assert (known.follows_us, known.times_written, known.interactions) == (True, 0, ())


async def test_who_comes_most_is_named_first_with_the_number_of_exchanges(store: Opened) -> None:
    people = await store()
    for count, author in enumerate(("ada", "bob", "cleo", "dan", "eve", "fay"), start=1):
        for index in range(count):
            await met(people, seen := notification(author=author, key=f"n{index}", kind="mention"))
            await people.mark_responded({seen.uri})
        await met(people, notification(author=author, key="f", kind="follow"))
    await met(people, notification(author="gil", key="f", kind="follow"))
    for index in range(9):
        await met(people, notification(author="spam", key=f"s{index}", kind="mention"))
    assert await people.closest() == [
        f"@{name}.example.social: {count} exchanges"
        for name, count in (("fay", 6), ("eve", 5), ("dan", 4), ("cleo", 3), ("bob", 2))
    ]


async def test_who_is_answered_for_the_first_time_is_an_insight_and_an_event_kept_over_restarts(store: Opened) -> None:
    people = await store()
    for author, key in (("ada", "n1"), ("ada", "n2"), ("bob", "n1")):
        await met(people, seen := notification(author=author, key=key))
        await people.mark_responded({seen.uri})
    await met(people, notification(author="promo"))
    reflection = (await store()).reflection
    assert reflection.events == 2
    assert reflection.insights == (Insight("New Person", f"@{ADA}"), Insight("New Person", "@bob.example.social"))


async def test_the_newest_twenty_insights_are_kept_each_once_until_self_md_takes_them_up(store: Opened) -> None:
    people = await store()
    for number in range(25):
        people.note_insight("Shared", f"source {number}", significant=True)
    people.note_insight("Answered", "Which roof would you rather sleep under, the tin or the slate?")
    people.note_insight("Answered", "WHICH ROOF WOULD YOU RATHER SLEEP, and another end")
    kept = (await store()).reflection
    assert kept.events == 25
    assert kept.is_due
    assert len(kept.insights) == 20
    assert kept.insights[-2:] == (
        Insight("Shared", "source 24"),
        Insight("Answered", "Which roof would you rather sleep under, the tin or the slate?"),
    )
    people.integrate_insights()
    assert (await store()).reflection == Reflection()


@pytest.mark.slow
async def test_however_many_it_meets_each_is_known_and_the_file_stays_small(store: Opened, tmp_path: Path) -> None:
    people, many = await store(), 24_000
    await people.record_interactions(notification(author=f"n{index}", key="n" * 700) for index in range(many))
    people.advance_seen_at(at())
    assert await people.prune_stale() == 0
    assert await (await store()).counts() == (many, 0, 0)
    assert await people.get(did("n0")) is not None
    assert (tmp_path / "relationships.json").stat().st_size < 1_000


@pytest.mark.parametrize("stored", [7, {"significantEvents": "x", "pendingInsights": [7, {"code": 1}, {"about": "a"}]}])
async def test_a_reflection_that_cannot_be_read_begins_anew(store: Opened, tmp_path: Path, stored: object) -> None:
    path = tmp_path / "relationships.json"
    path.write_text(json.dumps({"relationships": {}, "reflection": stored}))
    people = await store()
    assert people.reflection == Reflection()
    people.note_insight("Liked", "Tin sings.", significant=True)
    assert (await store()).reflection == Reflection(1, (Insight("Liked", "Tin sings."),))


def in_a_file(name: str, **more: object) -> dict[str, object]:
    """Return the entry of an account in the file of an earlier version."""
    seen = {"type": "reply", "uri": uri(name, "n1"), "timestamp": at(), "responded": True}
    entry = {"handle": f"{name}.example.social", "did": did(name), "firstSeen": at(), "lastInteraction": at()}
    return {**entry, "interactions": [seen], "olderExchanges": 2, "olderFollow": True, "responded": True, **more}


async def test_the_people_in_the_file_of_an_earlier_version_are_kept_also_after_a_kill(
    store: Opened, tmp_path: Path
) -> None:
    path, unreadable = tmp_path / "relationships.json", {"handle": 7, "ours": "odd"}
    known = {did("ada"): in_a_file("ada"), did("bob"): in_a_file("bob", displayName="Bob"), "odd": unreadable}
    before = json.dumps({"relationships": known, "seenAt": at(), "reflection": {"significantEvents": 3}})
    path.write_text(before)
    people = await store()
    await people.record_interactions([notification(key="n2")])
    assert json.loads(path.read_text())["relationships"] == {"odd": unreadable}
    assert "1 entries cannot be read" in people.notice
    path.write_text(before)  # as after a kill between the commit and the change of the file
    people = await store()
    ada = await people.get(did("ada"))
    assert ada is not None
    assert ([one.uri for one in ada.interactions], ada.exchanges) == ([uri("ada", "n1"), uri("ada", "n2")], 3)
    assert ada.follows_us
    bob = await people.get(did("bob"))
    assert (ada.display_name, bob and bob.display_name) == ("Ada", "Bob")
    assert (people.seen_at, people.reflection.events) == (at(), 3)
    assert (await people.counts(), len(await people.closest())) == ((2, 0, 0), 2)


ADA_ACTOR = Actor("did:plc:ada", "ada.example")
REF = StrongRef("at://did:plc:ada/app.bsky.feed.post/0", "cid")


def item(text: str, *, reply: bool = False, reposted: bool = False) -> FeedItem:
    refs = ReplyRefs(REF, REF) if reply else None
    post = Post("at://did:plc:ada/app.bsky.feed.post/1", "cid", ADA_ACTOR, text, "2026-01-05T12:00:00Z", reply=refs)
    return FeedItem(post, ADA_ACTOR if reposted else None)


@pytest.mark.parametrize(
    ("text", "username"),
    [
        ("🔗—`sh-marvin` I keep my drawers open. https://github.com/sh-marvin", "sh-marvin"),
        ("🔗—`ada` The other one is `bob` on GitHub.", "ada"),
        ("I work as `sh-rebecca` on GitHub, mostly at night", "sh-rebecca"),
        ("see github.com/ada for more", "ada"),
        ("github.com/ada, github.com/bob", "ada"),
        ("I'm `ada-lovelace` on GitHub", "ada-lovelace"),
        ("`bob` on GitHub, not github.com/ada", "bob"),
        ("github.com/features and github.com/ada", "ada"),
        ("(https://github.com/ada/?tab=stars#top)", "ada"),
        ("github.com/adalove\u2026", None),
        ("I'm not on GitHub", None),
        ("I'm not on GitHub, I'm `ada` on GitHub.", "ada"),
        ("`ada` is my name here, I am not on GitHub", None),
        ("github.com/org/repo", None),
        ("https://github.com/org/repo/issues/1", None),
        ("notgithub.com/ada", None),
        ("gist.github.com/ada", None),
        ("github.com/ada.bsky", None),
        ("github.com/-ada-", None),
    ],
)
def test_a_claim_is_read_where_one_is_made(text: str, username: str | None) -> None:
    assert extract_github_username_from_text(text) == username


def test_of_a_feed_the_first_identity_post_of_its_own_counts() -> None:
    own, other = "🔗—`ada` hello https://github.com/ada", "🔗—`bob` hello https://github.com/bob"
    feeds = (
        [item("I'm `eve` on GitHub"), item(own), item(other)],
        [item(other, reply=True), item(own)],
        [item(other, reposted=True), item(own)],
    )
    assert [found.text for feed in feeds if (found := find_identity_post(feed))] == [own] * 3
    assert find_identity_post([item("I'm `ada` on GitHub")]) is None
    assert find_identity_post([]) is None


@given(st.text(max_size=2_000))
def test_whatever_the_sentence_the_fixed_parts_stand_and_the_post_fits(sentence: str) -> None:
    text = build_identity_post_text("sh-marvin", sentence)
    assert text.startswith(f"{IDENTITY_POST_MARKER}`sh-marvin`")
    assert text.endswith("https://github.com/sh-marvin")
    assert grapheme_len(text) <= 300
    assert extract_github_username_from_text(text) == "sh-marvin"


@pytest.mark.parametrize("name", ["a", "sh-marvin", "A" * 39])
def test_a_name_that_github_would_give_is_one(name: str) -> None:
    assert is_github_username(name)


@pytest.mark.parametrize("name", ["", "-a", "a--b", "A" * 40, "settings", "ä"])
def test_another_name_is_none(name: str) -> None:
    assert not is_github_username(name)


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        ("https://bsky.app/profile/did:plc:ada", True),
        ("Bluesky: https://bsky.app/profile/did:plc:ada", True),
        ("# Ada\n\nI build small things.\n\n- **Bluesky:** did:plc:ada\n", True),
        ("Ada\nbluesky: <https://bsky.app/profile/did:plc:ada>\nbuilds", True),
        ("My friend did:plc:ada is on Bluesky.", False),
        ("> Bluesky: did:plc:ada", False),
        ("So that others find you, write:\n\n```\nBluesky: did:plc:ada\n```\n", False),
        ("<!-- Bluesky: did:plc:ada -->", False),
        ("https://bsky.app/profile/did:plc:ada/post/3kabc", False),
        ("did:plc:adam", False),
        ("https://bsky.app/profile/ada.example", False),
    ],
)
def test_a_page_names_a_did_only_on_a_line_of_its_own(shown: str, named: bool) -> None:  # noqa: FBT001 - a table
    assert names_did(shown, "did:plc:ada") is named
