"""The SOUL remembers whom it has met, within limits, and across restarts.

The identity post has one form, and a claim to a GitHub name is read only where one is made.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Actor, FeedItem, Post, ReplyRefs, StrongRef
from common.clock import FakeClock
from common.constants import STATE_MAX_BYTES
from common.errors import StorageError
from common.text.graphemes import grapheme_len
from modules.services.agent.attention_list import Insight, Reflection
from modules.services.peers.registry import (
    IDENTITY_POST_MARKER,
    build_identity_post_text,
    extract_github_username_from_text,
    find_identity_post,
    is_github_username,
    names_did,
)
from modules.services.peers.relationships import Relationships, read_reflection
from tests.modules.lives.bluesky.bluesky_values import START, at, did, notification, uri

ADA = "ada.example.social"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "relationships.json"


def store(path: Path, days: float = 0) -> Relationships:
    """Return the store as it opens `days` after the start."""
    return Relationships(path, FakeClock(START + timedelta(days=days)))


def test_a_first_meeting_is_written_as_others_know_it(path: Path) -> None:
    store(path).record_interaction(notification(key="n1"))
    written = json.loads(path.read_text())
    assert written["lastUpdated"] == at()
    assert written["relationships"] == {
        did("ada"): {
            "handle": ADA,
            "did": did("ada"),
            "displayName": "Ada",
            "interactions": [{"type": "reply", "uri": uri("ada", "n1"), "timestamp": at(), "responded": False}],
            "firstSeen": at(),
            "lastInteraction": at(),
            "sentiment": "unknown",
            "responded": False,
            "olderWritten": 0,
            "olderExchanges": 0,
            "olderFollow": False,
        }
    }


def test_two_accounts_of_one_handle_are_two(path: Path) -> None:
    people = store(path)
    for name in ("ada", "bob"):
        item = notification(author=name, key=f"of-{name}")
        people.record_interaction(replace(item, author=replace(item.author, handle="handle.invalid")))
    for name in ("ada", "bob"):
        found = store(path).get(did(name))
        assert found is not None
        assert [one.uri for one in found.interactions] == [uri(name, f"of-{name}")]


def test_the_same_notification_counts_once(path: Path) -> None:
    people = store(path)
    people.record_interaction(notification(key="n1"))
    people.record_interaction(notification(key="n1"))
    met = people.record_interaction(notification(key="n2", minutes=5))
    assert len(met.interactions) == 2
    assert met.first_seen == START
    assert met.last_interaction == START + timedelta(minutes=5)


def test_only_the_newest_fifty_meetings_are_kept(path: Path) -> None:
    people = store(path)
    for index in range(60):
        met = people.record_interaction(notification(key=f"n{index}", minutes=index))
    assert len(met.interactions) == 50
    assert met.interactions[0].uri == uri("ada", "n10")


def test_who_wrote_and_follows_is_known_for_it_also_after_fifty_likes(path: Path) -> None:
    people = store(path)
    for index, kind in enumerate(["follow", *["reply"] * 12, *["like"] * 60]):
        people.record_interaction(notification(key=f"n{index}", kind=kind, minutes=index))
        people.mark_responded([uri("ada", "n1"), uri("ada", "n2")])
    met = store(path).get(did("ada"))
    assert met is not None
    assert (met.times_written, met.times_written_before(uri("ada", "n72")), met.exchanges) == (12, 12, 2)
    assert store(path).follows_us(did("ada"))


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
def test_likes_reposts_and_follows_of_late_make_the_feeling(path: Path, kinds: list[str], sentiment: str) -> None:
    people = store(path)
    for index, kind in enumerate(kinds):
        met = people.record_interaction(notification(key=f"n{index}", kind=kind, minutes=index))
    assert met.sentiment == sentiment


def test_an_answer_of_ours_is_remembered_with_its_post(path: Path) -> None:
    people = store(path)
    people.record_interaction(notification(key="n1"))
    people.record_interaction(notification(key="n2"))
    people.mark_responded({uri("ada", "n1")})
    met = store(path).get(did("ada"))
    assert met is not None
    assert met.responded
    assert [one.responded for one in met.interactions] == [True, False]


def test_an_answer_to_somebody_unknown_is_not_remembered(path: Path) -> None:
    store(path).mark_responded({"at://nobody"})
    assert not path.exists()


def test_how_far_was_read_survives_and_never_moves_back(path: Path) -> None:
    people = store(path)
    assert people.seen_at is None
    exact = "2026-01-05T12:00:00.123456Z"
    people.advance_seen_at(exact)
    people.advance_seen_at("2026-01-05T12:00:00.123Z")
    people.advance_seen_at("2026-01-05T13:59:00+02:00")
    assert store(path).seen_at == exact
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
def test_who_stays_away_is_forgotten_friends_later(path: Path, kinds: list[str], days: float, stays: bool) -> None:  # noqa: FBT001
    people = store(path)
    for index, kind in enumerate(kinds):
        people.record_interaction(notification(key=f"n{index}", kind=kind))
    assert store(path, days).prune_stale() == (0 if stays else 1)
    assert (store(path).get(did("ada")) is not None) is stays


def test_of_a_follower_who_stays_away_the_follow_is_kept(path: Path) -> None:
    people = store(path)
    for index, kind in enumerate(["follow", "reply", "like"]):
        people.record_interaction(notification(key=f"n{index}", kind=kind))
    assert [store(path, 200).prune_stale() for _ in range(2)] == [1, 0]
    met = store(path, 200).get(did("ada"))
    assert met is not None
    assert (met.follows_us, met.times_written, met.interactions) == (True, 0, ())


@pytest.mark.slow
def test_however_many_it_meets_the_file_can_be_read_again_and_knows_the_latest(path: Path) -> None:
    people = store(path)
    with people.one_save():
        for index in range(24_000):
            item = notification(
                author=f"n{index}", key="n" * 100, minutes=index, kind="follow" if index < 9 else "reply"
            )
            people.record_interaction(item)
    assert path.stat().st_size > STATE_MAX_BYTES * 3 // 4
    assert people.prune_stale() > 0
    assert path.stat().st_size < STATE_MAX_BYTES * 3 // 4 + 100_000
    after = store(path)
    assert (after.notice, after.get(did("n10"))) == ("", None)
    assert after.follows_us(did("n5"))
    assert after.get(did("n23999")) == people.get(did("n23999"))


@pytest.mark.slow
def test_a_file_that_would_be_too_large_to_read_stays_as_it_was(path: Path) -> None:
    people = store(path)
    people.record_interaction(notification(key="n1"))
    before = path.read_text()

    def meet_many() -> None:
        with people.one_save():
            for index in range(12_000):
                people.record_interaction(notification(author=f"n{index}", key="n" * 1000))

    with pytest.raises(StorageError, match="would grow beyond 16 MiB"):
        meet_many()
    assert path.read_text() == before


def test_who_comes_most_is_named_first_with_the_number_of_exchanges(path: Path) -> None:
    people = store(path)
    for count, author in enumerate(("ada", "bob", "cleo", "dan", "eve", "fay"), start=1):
        for index in range(count):
            people.record_interaction(met := notification(author=author, key=f"n{index}", kind="mention"))
            people.mark_responded({met.uri})
        people.record_interaction(notification(author=author, key="f", kind="follow"))
    people.record_interaction(notification(author="gil", key="f", kind="follow"))
    for index in range(9):
        people.record_interaction(notification(author="spam", key=f"s{index}", kind="mention"))
    assert people.closest() == [
        f"@{name}.example.social: {count} exchanges"
        for name, count in (("fay", 6), ("eve", 5), ("dan", 4), ("cleo", 3), ("bob", 2))
    ]


def test_who_is_answered_for_the_first_time_is_an_insight_and_an_event_kept_over_restarts(path: Path) -> None:
    people = store(path)
    for author, key in (("ada", "n1"), ("ada", "n2"), ("bob", "n1")):
        people.record_interaction(met := notification(author=author, key=key))
        people.mark_responded({met.uri})
    people.record_interaction(notification(author="promo"))
    reflection = store(path).reflection
    assert reflection.events == 2
    assert reflection.insights == (Insight("New Person", f"@{ADA}"), Insight("New Person", "@bob.example.social"))
    assert json.loads(path.read_text())["reflection"]["significantEvents"] == 2


def test_the_newest_twenty_insights_are_kept_each_once_until_self_md_takes_them_up(path: Path) -> None:
    people = store(path)
    for number in range(25):
        people.note_insight("Shared", f"source {number}", significant=True)
    people.note_insight("Answered", "Which roof would you rather sleep under, the tin or the slate?")
    people.note_insight("Answered", "WHICH ROOF WOULD YOU RATHER SLEEP, and another end")
    kept = store(path).reflection
    assert kept.events == 25
    assert kept.is_due
    assert len(kept.insights) == 20
    assert kept.insights[-2:] == (
        Insight("Shared", "source 24"),
        Insight("Answered", "Which roof would you rather sleep under, the tin or the slate?"),
    )
    people.integrate_insights()
    assert store(path).reflection == Reflection()


@pytest.mark.parametrize("stored", [7, {"significantEvents": "x", "pendingInsights": [7, {"code": 1}, {"about": "a"}]}])
def test_a_reflection_that_cannot_be_read_begins_anew(path: Path, stored: object) -> None:
    path.write_text(json.dumps({"relationships": {}, "reflection": stored}))
    assert read_reflection(path) == store(path).reflection == Reflection()
    people = store(path)
    people.note_insight("Liked", "Tin sings.", significant=True)
    assert store(path).reflection == read_reflection(path) == Reflection(1, (Insight("Liked", "Tin sings."),))


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
