"""Tests of reading wire data: complete items are kept, broken ones are left out, and none makes the whole page fail.

Tests of links, mentions and tags: what counts as one, and that every facet points at the right bytes.
"""

import dataclasses
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto import convert
from adapters.atproto.reads import resolve_reply_refs
from adapters.atproto.richtext import (
    build_facets,
    detect_cashtags,
    detect_hashtags,
    detect_mentions,
    detect_urls,
    parse_bsky_post_url,
)
from adapters.atproto.types import Actor, FeedItem, Picture, Post, ReplyRefs, StrongRef, ThreadNode

ALICE = {"did": "did:plc:a", "handle": "alice.test", "displayName": "Alice"}
REPLY = {"parent": {"uri": "at://p", "cid": "cp"}, "root": {"uri": "at://r", "cid": "cr"}}
REFS = ReplyRefs(parent=StrongRef("at://p", "cp"), root=StrongRef("at://r", "cr"))

WORDS = """did handle uri cid author record text reply parent root replies post reason by facets features embed external
media images image alt fullsize likeCount labels val ref $link $type
id rev sender sentAt members unreadCount status kind lastMessage replyTo convoId message"""
KEYS = st.sampled_from(WORDS.split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=6),
    max_leaves=12,
)


def view(name: str = "1", **record: object) -> dict[str, Any]:
    return {
        "uri": f"at://did:plc:a/app.bsky.feed.post/{name}",
        "cid": f"c{name}",
        "author": ALICE,
        "record": {"text": f"text {name}", "createdAt": "2026-01-05T12:00:00Z", **record},
        "indexedAt": "2026-01-05T12:00:01Z",
    }


def posted(item: dict[str, Any]) -> Post:
    post = convert.post(item)
    assert post
    return post


def test_a_post_is_read_in_full() -> None:
    full = {**view(reply=REPLY), "replyCount": 1, "repostCount": 2, "likeCount": 3}
    assert posted(full) == Post(
        uri="at://did:plc:a/app.bsky.feed.post/1",
        cid="c1",
        author=Actor("did:plc:a", "alice.test", "Alice"),
        text="text 1",
        created_at="2026-01-05T12:00:00Z",
        indexed_at="2026-01-05T12:00:01Z",
        reply=REFS,
        reply_count=1,
        repost_count=2,
        like_count=3,
    )


def test_what_somebody_wrote_is_bounded_before_it_is_kept() -> None:
    much = "x" * 1_200_000
    links = [{"features": [{"uri": f"https://{much}.example"}, {"uri": "https://a.example"}]}]
    links += [{"features": [{"uri": f"https://a.example/{number}"}]} for number in range(1_000)]
    images = {"$type": "app.bsky.embed.images", "images": [{"alt": much, "image": {**FILE, "mimeType": much}}] * 9}
    author = {**ALICE, "displayName": much, "avatar": much}
    item = {**view(text=much, createdAt=much, facets=links, embed=images), "author": author, "reason": "mention"}
    kept = convert.notification(item)
    assert kept is not None
    assert kept.links[0] == "https://a.example"
    assert len(json.dumps(dataclasses.asdict(kept))) < 20_000
    assert len(json.dumps(dataclasses.asdict(posted({**item, "embed": SHOWN})))) < 20_000
    page = convert.profile({**author, "description": much, "followersCount": 10**30, "labels": [{"val": much}] * 9})
    assert page is not None
    assert len(json.dumps(dataclasses.asdict(page))) < 10_000


def test_links_come_in_full_from_facets_and_cards_once_each() -> None:
    link = {"features": [{"$type": "app.bsky.richtext.facet#link", "uri": "https://a.example/long"}]}
    mention = {"features": [{"$type": "app.bsky.richtext.facet#mention", "did": "did:plc:b"}]}
    card = {"$type": "app.bsky.embed.external", "external": {"uri": "https://b.example"}}
    quoted = {"$type": "app.bsky.embed.recordWithMedia", "media": card}
    assert posted(view(facets=[link, mention, link], embed=card)).links == (
        "https://a.example/long",
        "https://b.example",
    )
    assert posted(view(embed=quoted)).links == ("https://b.example",)


@pytest.mark.parametrize(
    ("embed", "has_media"),
    [
        ({"$type": "app.bsky.embed.images"}, True),
        ({"$type": "app.bsky.embed.recordWithMedia", "media": {"$type": "app.bsky.embed.images"}}, True),
        ({"$type": "app.bsky.embed.recordWithMedia", "media": {"$type": "app.bsky.embed.external"}}, False),
        ("nonsense", False),
    ],
)
def test_pictures_and_films_count_as_media(embed: object, *, has_media: bool) -> None:
    assert posted(view(embed=embed)).has_media is has_media


FILE = {"$type": "blob", "ref": {"$link": "bafkdot"}, "mimeType": "image/png", "size": 70}
UPLOADED: dict[str, Any] = {"$type": "app.bsky.embed.images", "images": [{"alt": "a dot", "image": FILE}]}
SHOWN: dict[str, Any] = {
    "$type": "app.bsky.embed.images#view",
    "images": [{"alt": "a dot", "thumb": "https://cdn.example/t/dot", "fullsize": "https://cdn.example/f/dot"}],
}
DOT = Picture("a dot", "https://cdn.example/f/dot", "bafkdot", "image/png", 70)
BY_RECORD, BY_VIEW = replace(DOT, url=""), Picture("a dot", "https://cdn.example/f/dot")


@pytest.mark.parametrize(
    ("uploaded", "shown", "pictures"),
    [
        (UPLOADED, SHOWN, (DOT,)),
        (UPLOADED, None, (BY_RECORD,)),
        (None, SHOWN, (BY_VIEW,)),
        (UPLOADED, {"$type": "app.bsky.embed.external#view"}, (BY_RECORD,)),
        (
            {"$type": "app.bsky.embed.recordWithMedia", "record": {}, "media": UPLOADED},
            {"$type": "app.bsky.embed.recordWithMedia#view", "record": {}, "media": SHOWN},
            (DOT,),
        ),
        ({"$type": "app.bsky.embed.record", "record": {"embed": UPLOADED}}, None, ()),
        ({"$type": "app.bsky.embed.video", "images": UPLOADED["images"]}, None, ()),
        ({**UPLOADED, "images": UPLOADED["images"] * 9}, None, (BY_RECORD,) * 4),
        ({**UPLOADED, "images": [{"alt": "no file"}, {"alt": 7, "image": FILE}]}, None, (replace(BY_RECORD, alt=""),)),
        ({**UPLOADED, "images": "many"}, {**SHOWN, "images": [None, {"fullsize": 3}]}, ()),
    ],
)
def test_pictures_are_known_by_what_was_uploaded_and_by_what_is_shown(
    uploaded: object, shown: object, pictures: tuple[Picture, ...]
) -> None:
    assert posted({**view(embed=uploaded), "embed": shown}).pictures == pictures


def test_only_a_repost_has_someone_who_put_it_there() -> None:
    repost = {"post": view(), "reason": {"$type": "app.bsky.feed.defs#reasonRepost", "by": {"did": "did:plc:b"}}}
    pinned = {"post": view(), "reason": {"$type": "app.bsky.feed.defs#reasonPin"}}
    assert convert.feed_item(repost) == FeedItem(posted(view()), Actor("did:plc:b", ""))
    assert convert.feed_item(pinned) == FeedItem(posted(view()), None)


def test_a_notification_of_an_unknown_reason_is_kept_as_it_is() -> None:
    item = {**view(), "reason": "hug", "isRead": True, "reasonSubject": "at://did:plc:me/app.bsky.feed.post/9"}
    found = convert.notification(item)
    assert found
    assert (found.kind, found.is_read, found.reason_subject) == ("hug", True, "at://did:plc:me/app.bsky.feed.post/9")


def test_one_broken_item_does_not_hide_the_others() -> None:
    page = {"feed": [{"post": view("1")}, {"post": {"uri": 5}}, "nonsense", None, {"post": view("2")}]}
    assert [item.post.cid for item in convert.items_of(page, "feed", convert.feed_item)] == ["c1", "c2"]


def test_a_thread_keeps_its_ancestors_and_leaves_out_what_is_gone() -> None:
    gone = {"$type": "app.bsky.feed.defs#notFoundPost", "uri": "at://x", "notFound": True}
    wire = {
        "post": view("3"),
        "parent": {"post": view("2"), "parent": {"post": view("1"), "parent": gone}},
        "replies": [{"post": view("4"), "replies": [{"post": view("5")}]}, gone],
    }
    three = convert.thread(wire)
    assert three
    assert three.parent == ThreadNode(posted(view("2")), ThreadNode(posted(view("1"))))
    assert three.replies == (ThreadNode(posted(view("4")), None, (ThreadNode(posted(view("5"))),)),)
    assert convert.thread(gone) is None


@given(st.dictionaries(KEYS, JSON, max_size=8))
@pytest.mark.slow
def test_no_json_whatever_makes_a_reader_fail(wire: dict[str, Any]) -> None:
    for read in (
        convert.actor,
        convert.profile,
        convert.post,
        convert.feed_item,
        convert.notification,
        convert.thread,
        convert.blob,
        convert.record,
        convert.message,
        convert.is_unreadable,
        convert.conversation,
        convert.event,
    ):
        read(wire)
        convert.items_of({"items": [wire, wire]}, "items", read)


PARENT = StrongRef("at://did:plc:a/app.bsky.feed.post/1", "c1")


@pytest.mark.parametrize(
    ("thread", "root"),
    [(None, PARENT), (ThreadNode(posted(view())), PARENT), (ThreadNode(posted(view(reply=REPLY))), REFS.root)],
)
def test_a_reply_hangs_under_the_root_its_parent_names(thread: ThreadNode | None, root: StrongRef) -> None:
    assert resolve_reply_refs(PARENT, thread) == ReplyRefs(PARENT, root)


@pytest.mark.parametrize(
    ("labels", "is_bot"),
    [
        ([{"src": "did:plc:a", "val": "bot"}], True),
        ([{"src": "did:plc:labeler", "val": "bot"}], False),
        ([{"src": "did:plc:a", "val": "bot", "neg": True}], False),
        ([{"src": "did:plc:a", "val": "robot"}], False),
        (["bot", 5, None], False),
    ],
)
def test_an_account_is_a_bot_if_it_says_so_of_itself(labels: object, *, is_bot: bool) -> None:
    item = {**view(), "author": {**ALICE, "labels": labels}, "reason": "mention"}
    found = convert.notification(item)
    assert found
    assert found.author.is_bot is is_bot
    assert posted(item).author.is_bot is is_bot


def test_a_profile_tells_when_the_account_was_made_if_it_is_known() -> None:
    told = convert.profile({**ALICE, "createdAt": "2026-01-05T12:00:00.000Z"})
    untold = convert.profile({**ALICE, "createdAt": 5})
    assert told
    assert untold
    assert (told.created_at, untold.created_at) == ("2026-01-05T12:00:00.000Z", "")


def quoting(uri: str, **shown: Any) -> dict[str, Any]:
    embed = {"$type": "app.bsky.embed.record", "record": {"uri": uri, "cid": "c"}}
    return {**view(embed=embed), "embed": {"$type": "app.bsky.embed.record#view", "record": {"uri": uri, **shown}}}


def test_the_post_that_is_quoted_is_read_one_deep_and_only_where_it_is_what_it_says() -> None:
    uri = f"at://{ALICE['did']}/app.bsky.feed.post/1"
    deeper = {"$type": "app.bsky.embed.record#view", "record": {"uri": uri, "author": ALICE, "cid": "c", "value": {}}}
    value = {"text": "Slate.", "embed": {"$type": "app.bsky.embed.record", "record": {"uri": uri, "cid": "c"}}}
    shown = {"cid": "c", "author": ALICE, "value": value, "embeds": [deeper]}
    quoted = posted(quoting(uri, **shown)).quoted
    assert quoted is not None
    assert (quoted.text, quoted.quoted_uri, quoted.quoted) == ("Slate.", uri, None)
    other = posted(quoting("at://did:plc:other/app.bsky.feed.post/1", **shown)).quoted
    assert other is None
    assert posted(quoting(uri, notFound=True)).quoted is None


def test_a_card_and_a_quoted_feed_have_a_title_and_a_description_within_bounds() -> None:
    page = {"uri": "https://b.example", "title": "t" * 9_000, "description": "d" * 9_000}
    card = posted(view(embed={"$type": "app.bsky.embed.external", "external": page})).card
    assert card is not None
    assert (len(card.title), len(card.description)) == (300, 1_000)
    feed = posted(quoting("at://did:plc:f/app.bsky.feed.generator/1", displayName="Rain", description="Wet.")).card
    assert feed is not None
    assert (feed.title, feed.description) == ("Rain", "Wet.")
    video = {"$type": "app.bsky.embed.video", "alt": "a weir at night"}
    assert posted(view(embed=video)).video_alt == "a weir at night"


_SCRAPS = st.sampled_from(
    [
        "https://a.example/b",
        "(see https://a.example/c_(d)).",
        "github.com/o/r",
        "@bob.test",
        "#tag",
        "$ABC",
        "👩‍👩‍👧",
        "é",
        "(",
        ")",
        "]",
    ]
)
TEXTS = st.lists(_SCRAPS | st.text(max_size=5), max_size=12).map(" ".join) | st.lists(_SCRAPS, max_size=6).map("".join)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("see https://example.com/a.", ["https://example.com/a"]),
        ("(https://example.com/a)", ["https://example.com/a"]),
        ("https://en.example.org/wiki/A_(b)", ["https://en.example.org/wiki/A_(b)"]),
        ("(https://en.example.org/wiki/A_(b)).", ["https://en.example.org/wiki/A_(b)"]),
        ("https://example.com/a?!...", ["https://example.com/a"]),
        ("[x](https://example.com/a)]", ["https://example.com/a"]),
        ("https://", []),
        ("ftp://example.com/a", []),
        ("github.com/org/repo.", ["https://github.com/org/repo"]),
        ("GitHub.com/a", ["https://GitHub.com/a"]),
        ("github.com", []),
        ("github.com/", []),
        ("mygithub.com/a", []),
        ("example.com/a", []),
        ("https://example.com/(github.com/a", ["https://example.com/(github.com/a"]),
    ],
)
def test_links_are_found_without_the_punctuation_around_them(text: str, values: list[str]) -> None:
    assert [span.value for span in detect_urls(text)] == values


@pytest.mark.parametrize(("name", "domain"), [("npmjs", "com"), ("pypi", "org"), ("crates", "io")])
def test_pages_of_package_indexes_are_links_without_a_scheme(name: str, domain: str) -> None:
    assert [span.value for span in detect_urls(f"{name}.{domain}/x")] == [f"https://{name}.{domain}/x"]
    assert detect_urls(f"{name}x{domain}/x") == []


def test_a_bare_link_stays_bare_in_the_text() -> None:
    (span,) = detect_urls("see github.com/a")
    assert (span.start, span.end, span.value) == (4, 16, "https://github.com/a")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("@alice.test", ["alice.test"]),
        ("hi @Alice.Test, and (@bob.example.com)!", ["alice.test", "bob.example.com"]),
        ("@alice.test.", ["alice.test"]),
        ("@alice", []),
        ("me@alice.test", []),
        ("@alice.4you", []),
        ("@-alice.test", []),
        (f"@{'a' * 63}.test", [f"{'a' * 63}.test"]),
        (f"@{'a' * 64}.test", []),
    ],
)
def test_mentions_are_handles_after_an_at_sign(text: str, values: list[str]) -> None:
    assert [span.value for span in detect_mentions(text)] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [("$AAPL up", ["AAPL"]), ("($A) $ABCDEF.", ["A", "ABCDEF"]), ("$ABCDEFG", []), ("$aapl", []), ("$AAPL1", [])],
)
def test_cashtags_are_short_and_capital(text: str, values: list[str]) -> None:
    assert [span.value for span in detect_cashtags(text)] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("#design is #fun!", ["design", "fun"]),
        ("(#a_b-c)", ["a_b-c"]),
        ("#münchen #東京 #हिन्दी", ["münchen", "東京", "हिन्दी"]),
        ("#1", []),
        ("a#b", []),
        ("https://example.com/a#b", []),
        (f"#{'a' * 64}", ["a" * 64]),
        (f"#{'a' * 65}", []),
    ],
)
def test_hashtags_begin_with_a_letter_of_any_script(text: str, values: list[str]) -> None:
    assert [span.value for span in detect_hashtags(text)] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("@alice.bsky.socialさん、こんにちは", ["@alice.bsky.social"]),
        ("こんにちは@alice.bsky.socialさん", ["@alice.bsky.social"]),
        ("@alice.bsky.social님 안녕하세요", ["@alice.bsky.social"]),
        ("「#設計」、#東京。と\uff03京都\uff01", ["#設計", "#東京", "#京都"]),
        ("今日は#トム・クルーズ の話", ["#トム・クルーズ"]),
        ("株は$ABC、$DEF。", ["$ABC", "$DEF"]),
        ("https://example.org/aを見て", ["https://example.org/a"]),
        ("これhttps://example.org/a?b=1です", ["https://example.org/a?b=1"]),
        ("请看https://example.com/a。谢谢", ["https://example.com/a"]),
        ("リポジトリはgithub.com/o/rです", ["github.com/o/r"]),
        ("https://ja.wikipedia.org/wiki/東京_(曖昧さ回避)", ["https://ja.wikipedia.org/wiki/東京_(曖昧さ回避)"]),
        ("https://www.日本語.jp/道?q=駅", ["https://www.日本語.jp/道?q=駅"]),
    ],
)
def test_names_links_and_tags_end_where_a_script_without_spaces_goes_on(text: str, values: list[str]) -> None:
    known = dict.fromkeys(("alice.bsky.social", "alice.bsky", "bob.test"), "did:plc:a")
    raw, facets = text.encode(), build_facets(text, known)
    shown = [raw[one["index"]["byteStart"] : one["index"]["byteEnd"]].decode() for one in facets]
    assert [one.replace("\uff03", "#") for one in shown] == values


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://bsky.app/profile/alice.test/post/3kabc", ("alice.test", "3kabc")),
        ("https://www.bsky.app/profile/alice.test/post/3kabc/?ref=x#y", ("alice.test", "3kabc")),
        ("bsky.app/profile/alice.test/post/3kabc", ("alice.test", "3kabc")),
        ("https://bsky.app/profile/alice.test/post/3kabc/liked-by", None),
        ("https://evil.example/bsky.app/profile/alice.test/post/3kabc", None),
        ("https://bsky.app.evil.example/profile/alice.test/post/3kabc", None),
        ("https://bsky.app/profile/alice/post/3kabc", None),
    ],
)
def test_links_to_posts_are_read_and_nothing_else(url: str, parts: tuple[str, str] | None) -> None:
    assert parse_bsky_post_url(url) == parts


def test_facets_carry_the_byte_span_and_the_feature() -> None:
    facets = build_facets("é @Bob.test github.com/a #x $Y", {"bob.test": "did:plc:bob"})
    assert facets == [
        {
            "index": {"byteStart": 3, "byteEnd": 12},
            "features": [{"$type": "app.bsky.richtext.facet#mention", "did": "did:plc:bob"}],
        },
        {
            "index": {"byteStart": 13, "byteEnd": 25},
            "features": [{"$type": "app.bsky.richtext.facet#link", "uri": "https://github.com/a"}],
        },
        {"index": {"byteStart": 26, "byteEnd": 28}, "features": [{"$type": "app.bsky.richtext.facet#tag", "tag": "x"}]},
        {"index": {"byteStart": 29, "byteEnd": 31}, "features": [{"$type": "app.bsky.richtext.facet#tag", "tag": "Y"}]},
    ]


@given(TEXTS)
def test_facets_never_overlap_and_each_cuts_out_whole_characters(text: str) -> None:
    raw, end = text.encode(), 0
    facets = build_facets(text, {"bob.test": "did:plc:bob"})
    for facet in facets:
        start = facet["index"]["byteStart"]
        assert end <= start < facet["index"]["byteEnd"] <= len(raw)
        end = facet["index"]["byteEnd"]
        shown = raw[start:end].decode()
        feature = facet["features"][0]
        said = feature.get("uri") or feature.get("tag") or "bob.test"
        assert shown.lower() in {said.lower(), f"#{said}".lower(), f"${said}".lower(), f"@{said}", said.lower()[8:]}
