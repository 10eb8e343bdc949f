"""The identity post is written in one form, and a claim to a GitHub name is read only where one is made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Actor, FeedItem, Post, ReplyRefs, StrongRef
from common.text.graphemes import grapheme_len
from modules.services.peers.registry import (
    IDENTITY_POST_MARKER,
    build_identity_post_text,
    extract_github_username_from_text,
    find_identity_post,
    is_github_username,
    names_did,
)

ADA = Actor("did:plc:ada", "ada.example")
REF = StrongRef("at://did:plc:ada/app.bsky.feed.post/0", "cid")


def item(text: str, *, reply: bool = False, reposted: bool = False) -> FeedItem:
    refs = ReplyRefs(REF, REF) if reply else None
    post = Post("at://did:plc:ada/app.bsky.feed.post/1", "cid", ADA, text, "2026-01-05T12:00:00Z", reply=refs)
    return FeedItem(post, ADA if reposted else None)


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
