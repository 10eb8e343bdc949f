"""Tests of records and addresses: what the client sends matches the network's schema."""

from datetime import UTC, datetime

import pytest

from adapters.atproto.records import LIKE, follow_record, parse_at_uri, post_problem, post_record, subject_record
from adapters.atproto.types import Blob, PostImage, ReplyRefs, StrongRef

NOW = datetime(2026, 1, 5, 12, 0, 0, 123456, tzinfo=UTC)
IMAGE = PostImage(Blob("bafyblob", "image/png", 70), "a dot", 2, 1)
IMAGE_WIRE = {
    "alt": "a dot",
    "image": {"$type": "blob", "ref": {"$link": "bafyblob"}, "mimeType": "image/png", "size": 70},
    "aspectRatio": {"width": 2, "height": 1},
}
QUOTE = StrongRef("at://did:plc:b/app.bsky.feed.post/3k", "bafyquote")
QUOTE_WIRE = {"$type": "app.bsky.embed.record", "record": {"uri": QUOTE.uri, "cid": QUOTE.cid}}


@pytest.mark.parametrize(
    ("text", "images", "problem"),
    [
        ("hello", 0, None),
        ("x" * 300, 0, None),
        ("👩‍👩‍👧" * 160, 0, None),
        ("x" * 301, 0, "the text has 301 characters, 1 over 300"),
        ("👩‍👩‍👧" * 170, 0, "the text has 3060 bytes, 60 over 3000"),
        ("", 0, "there is nothing to post"),
        (" \n", 0, "there is nothing to post"),
        ("", 1, None),
        ("", 4, None),
        ("", 5, "there are 5 images, the limit is 4"),
        ("half \ud83d", 0, "the text holds half of a character pair (a lone surrogate)"),
    ],
)
def test_what_the_network_would_refuse_is_known_before_sending(text: str, images: int, problem: str | None) -> None:
    assert post_problem(text, [IMAGE] * images) == problem


def test_a_plain_post_carries_only_what_it_has() -> None:
    assert post_record("hello", created_at=NOW, languages=(), did_map={}) == {
        "$type": "app.bsky.feed.post",
        "text": "hello",
        "createdAt": "2026-01-05T12:00:00.123Z",
    }


def test_a_reply_names_parent_and_root() -> None:
    refs = ReplyRefs(parent=StrongRef("at://p", "cp"), root=StrongRef("at://r", "cr"))
    record = post_record("yes", created_at=NOW, languages=("en",), did_map={}, reply=refs)
    assert record["reply"] == {"root": {"uri": "at://r", "cid": "cr"}, "parent": {"uri": "at://p", "cid": "cp"}}


def test_a_post_names_at_most_three_languages() -> None:
    record = post_record("hi", created_at=NOW, languages=("en", "de", "fr", "it"), did_map={})
    assert record["langs"] == ["en", "de", "fr"]


@pytest.mark.parametrize(
    ("images", "quote", "embed"),
    [
        ([], None, None),
        ([IMAGE], None, {"$type": "app.bsky.embed.images", "images": [IMAGE_WIRE]}),
        ([], QUOTE, QUOTE_WIRE),
        (
            [IMAGE],
            QUOTE,
            {
                "$type": "app.bsky.embed.recordWithMedia",
                "record": QUOTE_WIRE,
                "media": {"$type": "app.bsky.embed.images", "images": [IMAGE_WIRE]},
            },
        ),
    ],
)
def test_images_and_quote_are_embedded_alone_or_together(
    images: list[PostImage], quote: StrongRef | None, embed: dict[str, object] | None
) -> None:
    record = post_record("look", created_at=NOW, languages=(), did_map={}, images=images, quote=quote)
    assert record.get("embed") == embed


def test_an_image_of_unknown_size_claims_no_shape() -> None:
    record = post_record("", created_at=NOW, languages=(), did_map={}, images=[PostImage(IMAGE.blob, "")])
    assert "aspectRatio" not in record["embed"]["images"][0]


def test_likes_and_follows_say_whom_and_when() -> None:
    when = "2026-01-05T12:00:00.123Z"
    assert subject_record(LIKE, QUOTE, NOW) == {
        "$type": LIKE,
        "subject": {"uri": QUOTE.uri, "cid": QUOTE.cid},
        "createdAt": when,
    }
    assert follow_record("did:plc:b", NOW) == {
        "$type": "app.bsky.graph.follow",
        "subject": "did:plc:b",
        "createdAt": when,
    }


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("at://did:plc:a/app.bsky.feed.post/3k", ("did:plc:a", "app.bsky.feed.post", "3k")),
        ("at://alice.test/app.bsky.actor.profile/self", ("alice.test", "app.bsky.actor.profile", "self")),
        ("at://did:plc:a/app.bsky.feed.post", None),
        ("at://did:plc:a/app.bsky.feed.post/3k/more", None),
        ("https://did:plc:a/app.bsky.feed.post/3k", None),
        ("", None),
    ],
)
def test_addresses_are_taken_apart(uri: str, parts: tuple[str, str, str] | None) -> None:
    assert parse_at_uri(uri) == parts
