"""Formats and shapes of wire data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from town.atproto.cids import blob_cid, link_bytes, record_cid
from town.atproto.lexicon import Boolean, Fields, File, Listing, MismatchError, Text, Variant, check_data_model, fits


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("handle", ["a.test", "xn--fiq.example.com", "A-b.c9.io"], ["test", "-a.test", "a..test", "a.9", "a_b.test"]),
        ("DID", ["did:plc:abc", "did:web:x.y%3A80"], ["did:plc:", "DID:plc:a", "did:PLC:a", "plc:a"]),
        ("AT identifier", ["a.test", "did:plc:abc"], ["a", "", "did:"]),
        ("NSID", ["app.bsky.feed.post", "com.example.x"], ["app.bsky", "app.bsky.feed-post.", "app.bsky.9x"]),
        ("record key", ["self", "3kabc", "a~b:c-d_e"], [".", "..", "a/b", "", "x" * 513]),
        ("TID string", ["3kabcdefghij2"], ["zkabcdefghij2", "3kabcdefghij", "3kabcdefghij1"]),
        (
            "at-uri",
            ["at://a.test", "at://did:plc:a/app.bsky.feed.post/x"],
            ["at://", "at://a.test/x", "http://a.test", "at://a.test/app.bsky.feed.post/"],
        ),
        ("uri", ["https://x.y", "mailto:a@b"], ["x", "https://a b", "HTTPS://x"]),
        ("language", ["en", "pt-BR", "zh-Hant"], ["e", "en_US", "en-"]),
        (
            "datetime",
            ["2026-01-05T12:00:00Z", "2026-01-05T12:00:00.123456+02:00"],
            ["2026-01-05", "2026-13-05T12:00:00Z", "2026-01-05T12:00:00", "2026-01-05 12:00:00Z"],
        ),
        ("CID string", [blob_cid(b""), record_cid({})], ["", "b", "bafy", "zz", "b!!!"]),
    ],
)
def test_a_format_takes_what_fits_and_nothing_else(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not fits(name, text)] == []
    assert [text for text in bad if fits(name, text)] == []


@pytest.mark.parametrize(
    ("shape", "value", "problem"),
    [
        (Boolean(), 1, "Expected boolean value type (got 1) at $"),
        (Listing(Text()), {}, "Expected array value type (got {}) at $"),
        (Fields({"a": Fields({"b": Text()})}), {"a": {"b": None}}, "Expected string value type (got null) at $.a.b"),
        (
            Variant({"x": Fields(), "y": Fields()}, closed=True),
            {"$type": "z"},
            'Expected one of "x" or "y" (got "z") at $.$type',
        ),
        (File("image/*", 5), {"$type": "blob"}, 'Expected blob value type (got {"$type": ...}) at $'),
    ],
)
def test_a_mismatch_says_what_and_where(
    shape: Boolean | Listing | Fields | Variant | File, value: object, problem: str
) -> None:
    with pytest.raises(MismatchError) as caught:
        shape.check(value, "$")
    assert str(caught.value) == problem


data = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), data, max_size=5))
def test_a_cid_depends_on_content_not_on_the_order_of_fields(record: dict[str, object]) -> None:
    check_data_model(record, "$")
    turned = dict(reversed(record.items()))
    assert record_cid(turned) == record_cid(record)
    assert link_bytes(record_cid(record))[:4] == bytes((1, 0x71, 0x12, 32))
