"""Tests of reading our account's preferences, and of the labels that are requested because of them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto import convert
from adapters.atproto.reads import MOST_LABELERS, account_preferences
from adapters.atproto.types import AccountPreferences, MutedWord, PostLabel
from adapters.atproto.xrpc import BLUESKY_LABELER
from common.clock import FakeClock
from common.result import Ok
from tests.adapters.atproto.atproto_scripted import DID, Answer, Scripted

DEFS = "app.bsky.actor.defs#"
POST = "at://did:plc:kit/app.bsky.feed.post/1"
LIST = f"at://{DID}/app.bsky.graph.list/3jzfcijpj2z2a"
GATE, QUOTES = "app.bsky.feed.threadgate#", "app.bsky.feed.postgate#disableRule"
NEXT_YEAR = "2027-01-01T00:00:00Z"
MENTIONED, LISTED = {"$type": f"{GATE}mentionRule"}, {"$type": f"{GATE}listRule", "list": LIST}
WHOLE: list[dict[str, Any]] = [
    {"$type": f"{DEFS}adultContentPref", "enabled": False},
    {
        "$type": f"{DEFS}mutedWordsPref",
        "items": [
            {"id": "1", "value": " moss ", "targets": ["content", "tag"], "actorTarget": "all"},
            {
                "value": "rain",
                "targets": ["tag"],
                "actorTarget": "exclude-following",
                "expiresAt": "2027-01-01T00:00:00Z",
            },
            {"targets": ["content"]},
        ],
    },
    {"$type": f"{DEFS}hiddenPostsPref", "items": [POST, 7]},
    {"$type": f"{DEFS}labelersPref", "labelers": [{"did": "did:plc:labeler"}, {"did": "did:plc:x\r\nevil: 1"}, {}]},
    {"$type": f"{DEFS}contentLabelPref", "label": "porn", "visibility": "hide"},
    {"$type": f"{DEFS}contentLabelPref", "label": "rude", "labelerDid": "did:plc:labeler", "visibility": "hide"},
    {"$type": f"{DEFS}contentLabelPref", "label": "nudity", "visibility": "warn"},
    {
        "$type": f"{DEFS}postInteractionSettingsPref",
        "threadgateAllowRules": [
            {"$type": f"{GATE}mentionRule"},
            {"$type": f"{GATE}listRule", "list": LIST},
            {"$type": "x"},
        ],
        "postgateEmbeddingRules": [{"$type": QUOTES}],
    },
]


def test_what_the_account_chose_is_read_and_what_is_broken_is_left_out() -> None:
    assert account_preferences({"preferences": WHOLE}) == AccountPreferences(
        muted_words=(MutedWord("moss"), MutedWord("rain", in_text=False, spares_followed=True, until=NEXT_YEAR)),
        hidden_posts=frozenset({POST}),
        labelers=("did:plc:labeler",),
        hidden_labels=frozenset({("porn", ""), ("rude", "did:plc:labeler")}),
        replies=("mentioned", LIST),
        may_be_quoted=False,
    )


@pytest.mark.parametrize(
    ("settings", "replies", "may_be_quoted"),
    [
        ({}, None, True),
        ({"threadgateAllowRules": [], "postgateEmbeddingRules": []}, (), True),
        ({"threadgateAllowRules": [{"$type": f"{GATE}listRule", "list": "at://x/y/z"}]}, (), True),
    ],
)
def test_without_rules_nobody_may_reply_and_without_a_choice_everybody(
    *, settings: dict[str, Any], replies: tuple[str, ...] | None, may_be_quoted: bool
) -> None:
    told = account_preferences({"preferences": [{"$type": f"{DEFS}postInteractionSettingsPref", **settings}]})
    assert told == AccountPreferences(replies=replies, may_be_quoted=may_be_quoted)


FIELDS = "$type items labelers did value targets expiresAt label visibility threadgateAllowRules list"
KEYS = st.sampled_from(FIELDS.split())
WORDS = st.sampled_from([f"{DEFS}{name}Pref" for name in ("mutedWords", "hiddenPosts", "labelers", "contentLabel")])
JSON = st.recursive(
    st.none() | st.integers() | WORDS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)


@given(JSON)
def test_no_answer_breaks_the_reading(wire: Any) -> None:
    assert account_preferences({"preferences": wire}) is None or isinstance(wire, list)


def test_no_more_labelers_are_asked_than_a_header_holds() -> None:
    labelers = [{"did": f"did:plc:{number}"} for number in range(1000)]
    told = account_preferences({"preferences": [{"$type": f"{DEFS}labelersPref", "labelers": labelers}]})
    assert told is not None
    assert len(told.labelers) == MOST_LABELERS


@pytest.mark.parametrize(
    ("viewer", "barrier"),
    [
        ({"muted": True}, "muted"),
        ({"mutedByList": {"uri": LIST}}, "muted"),
        ({"mutedOnlyReposts": True, "muted": False}, ""),
        ({"blockedBy": True, "muted": True}, "blocks us"),
        ({"blocking": "at://b", "blockedBy": True}, "blocked"),
    ],
)
def test_what_stands_between_us_and_an_account_is_read(viewer: dict[str, Any], barrier: str) -> None:
    wire = {"did": "did:plc:kit", "handle": "kit.test", "viewer": viewer}
    actor, profile = convert.actor(wire), convert.profile(wire)
    assert actor
    assert profile
    assert (actor.barrier, profile.barrier, actor.is_followed) == (barrier, barrier, "following" in viewer)


def test_tags_and_labels_of_a_post_and_of_its_author_are_read() -> None:
    tag = {"features": [{"$type": "app.bsky.richtext.facet#tag", "tag": "moss"}]}
    gone = {"val": "rude", "src": "did:plc:labeler", "neg": True}
    author = {"did": "did:plc:kit", "handle": "kit.test", "labels": [{"val": "spam", "src": "did:plc:labeler"}]}
    labels = [{"val": "porn", "src": "did:plc:kit"}, gone, {"val": "nobody's"}]
    record = {"text": "x", "facets": [tag], "tags": ["rain", "moss", 7]}
    post = convert.post({"uri": POST, "cid": "c", "author": author, "record": record, "labels": labels})
    assert post
    assert post.tags == ("moss", "rain")
    assert post.labels == (PostLabel("porn", "did:plc:kit"), PostLabel("spam", "did:plc:labeler"))


@pytest.mark.asyncio(loop_scope="session")
async def test_labels_of_its_labelers_are_asked_for_once_they_are_known(
    scripted: Scripted, tmp_path: Path, clock: FakeClock
) -> None:
    scripted.answers = [Answer(body={"preferences": WHOLE}), Answer(body={"feed": []})]
    client = scripted.client(tmp_path, clock)
    assert isinstance(await client.get_preferences(), Ok)
    await client.get_timeline()
    await client.get_record("at://did:plc:kit/app.bsky.feed.post/1")
    await client.aclose()
    asked = [one.headers.get("atproto-accept-labelers") for one in scripted.asked]
    assert asked == [None, f"{BLUESKY_LABELER};redact, did:plc:labeler", None]


@pytest.mark.asyncio(loop_scope="session")
async def test_an_answer_without_preferences_says_nothing(scripted: Scripted, tmp_path: Path, clock: FakeClock) -> None:
    scripted.answers = [Answer(body={})]
    client = scripted.client(tmp_path, clock)
    read = await client.get_preferences()
    await client.aclose()
    assert not isinstance(read, Ok)
