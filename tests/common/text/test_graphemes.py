"""Tests of length as readers see it: a family emoji is one character, and a cut never splits it.

Text is counted, cut and hashed as members written in JavaScript do it.
"""

import hashlib

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.graphemes import (
    CLUSTER,
    fit_post_text,
    grapheme_len,
    leading_part,
    leading_sentences,
    truncate_graphemes,
)
from common.text.strings import base36, rolling_hash, u16_len, u16_slice
from tests.exploration import examples

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
ACCENT = "e\u0301"
URL = "https://example.com/a"


@pytest.mark.parametrize(
    ("text", "length"), [("", 0), ("abc", 3), (FAMILY, 1), (FLAG * 2, 2), (ACCENT, 1), ("👍🏽", 1), ("a\r\nb", 3)]
)
def test_length_counts_what_readers_see(text: str, length: int) -> None:
    assert grapheme_len(text) == length


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abc", 3, "abc"),
        ("abc", 2, "ab"),
        ("abc", 0, ""),
        ("abc", -1, ""),
        (FAMILY + "x", 1, FAMILY),
        ("a" + FLAG + FLAG, 2, "a" + FLAG),
        (ACCENT * 3, 2, ACCENT * 2),
    ],
)
def test_a_cut_keeps_whole_characters(text: str, limit: int, kept: str) -> None:
    assert truncate_graphemes(text, limit) == kept


@given(text=st.text(max_size=60), limit=st.integers(min_value=0, max_value=40))
def test_a_cut_is_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    cut = truncate_graphemes(text, limit)
    assert text.startswith(cut)
    assert grapheme_len(cut) == min(limit, grapheme_len(text))


@pytest.mark.parametrize(
    ("text", "url", "limit", "fitted"),
    [
        ("done", None, 300, "done"),
        ("done", URL, 300, f"done\n\n{URL}"),
        ("  ", URL, 300, URL),
        ("a long story", URL, grapheme_len(URL) + 2 + 6, f"a lon…\n\n{URL}"),
        ("a long story", None, 6, "a lon…"),
        ("two words", None, 5, "two…"),
    ],
)
def test_prose_gives_way_and_the_link_never(text: str, url: str | None, limit: int, fitted: str) -> None:
    assert fit_post_text(text, url, limit) == fitted


@given(text=st.text(max_size=80), limit=st.integers(min_value=1, max_value=60), with_url=st.booleans())
def test_whatever_is_said_fits_or_is_refused(text: str, limit: int, with_url: bool) -> None:  # noqa: FBT001
    url = URL if with_url else None
    if url and limit < len(URL):
        with pytest.raises(ValueError, match="link alone"):
            fit_post_text(text, url, limit)
        return
    fitted = fit_post_text(text, url, limit)
    assert grapheme_len(fitted) <= limit
    assert not url or fitted.endswith(URL)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("One. Two! Three?", 300, "One. Two! Three?"),
        ("One. Two! Three?", 12, "One. Two!"),
        ('He said "no." Then more', 15, 'He said "no."'),
        ("No end in sight here", 10, ""),
        ("3.5 m of water. More", 16, "3.5 m of water."),
        ("Low. It rose 3.5 m", 15, "Low."),
        ("水很低。昨天涨了。后来", 9, "水很低。昨天涨了。"),
        ("「低い。」彼は言った。", 6, "「低い。」"),
        ("पानी कम है। फिर बढ़ा।", 10, "पानी कम है।"),
        ("پانی کم ہے۔ پھر بڑھا", 12, "پانی کم ہے۔"),  # noqa: RUF001
        ("Ջուրը ցածր է։ Հետո", 15, "Ջուրը ցածր է։"),  # noqa: RUF001
        ("", 10, ""),
    ],
)
def test_leading_sentences_are_whole_and_fit(text: str, limit: int, expected: str) -> None:
    assert leading_sentences(text, limit) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("One. Two.", 9, "One. Two."),
        ("One. Two three.", 9, "One. …"),
        ("Two:\n- one\n- two", 14, "Two:\n- one …"),
        ("One. Two\nthree.", 12, "One. Two …"),
        ("abcdefgh", 6, "abcd …"),
    ],
)
def test_a_part_ends_with_a_whole_sentence_or_line_where_it_can(text: str, limit: int, expected: str) -> None:
    assert leading_part(text, limit) == expected


_SIGNS = "ab \r\n\u0301\u200d\ufe0f\u0903\u0600\u1100\u1161😀👩👧🏽नम"


# NOTE(self): after a flag and a virama, `\X` joins a consonant; Unicode 16 does so only after another consonant.
@given(st.one_of(*(st.text(st.sampled_from(_SIGNS + more), max_size=40) for more in ("🇩🇪", "्"))))
def test_a_character_is_what_unicode_says(text: str) -> None:
    assert CLUSTER.findall(text) == regex.findall(r"\X", text)


PALETTE = "\U0001f3a8"
ANY_TEXT = st.text(st.characters(), max_size=40)


@pytest.mark.parametrize(("text", "units"), [("", 0), ("abc", 3), ("é", 1), ("你好", 2), (PALETTE, 2), ("\ud83c", 1)])
def test_a_sign_beyond_the_first_plane_counts_two(text: str, units: int) -> None:
    assert u16_len(text) == units


def test_a_pair_that_the_cut_splits_is_told_by_a_replacement_sign() -> None:
    assert u16_slice(f"a{PALETTE}b", 2) == "a\ufffd"
    assert u16_slice(f"a{PALETTE}b", 3) == f"a{PALETTE}"
    assert u16_slice(f"a{PALETTE}b", 99) == f"a{PALETTE}b"
    assert u16_slice("abc", 0) == u16_slice("abc", -1) == ""


@pytest.mark.parametrize(("units", "begins"), [(100, "3de43f6caf237be7"), (50, "dfa736f6")])
def test_an_election_by_hash_comes_out_as_it_does_for_the_others(units: int, begins: str) -> None:
    words = "a" + 60 * PALETTE
    assert hashlib.sha256(f"marvin{u16_slice(words, units)}".encode()).hexdigest().startswith(begins)


@pytest.mark.parametrize(
    ("name", "value"), [("host", 3208616), ("marvin", 1081295363), ("rebecca", 1081361035), ("peterben", 487571199)]
)
def test_a_name_is_hashed_as_it_is_by_the_others(name: str, value: int) -> None:
    assert abs(rolling_hash(name)) == value


@given(ANY_TEXT, st.integers(0, 90))
@settings(max_examples=examples(100), deadline=None)
def test_a_slice_is_never_longer_than_asked_and_can_always_be_encoded(text: str, units: int) -> None:
    cut = u16_slice(text, units)
    assert u16_len(cut) == min(units, u16_len(text))
    assert u16_slice(cut, units) == cut
    assert cut.encode().decode() == cut


@given(st.integers(-(10**12), 10**12))
@settings(max_examples=examples(100), deadline=None)
def test_base_36_is_read_back_by_the_language_itself(number: int) -> None:
    assert int(base36(number), 36) == number
    assert base36(number) == base36(number).lower()
