"""Links, mentions and tags: what is one, what is none, and that every facet points at the bytes it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.richtext import (
    build_facets,
    detect_cashtags,
    detect_hashtags,
    detect_mentions,
    detect_urls,
    parse_bsky_post_url,
)

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
