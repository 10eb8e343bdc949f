"""What looks the same is the same."""

# ruff: noqa: RUF001 - look-alike characters are what is tested here

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text.hidden import shape, skeleton


@pytest.mark.parametrize(
    "text",
    [
        "correct horse",
        "CORRECT-HORSE!",
        "ｃｏｒｒｅｃｔ　ｈｏｒｓｅ",
        "соrrесt hоrѕе",
        "СОRRЕСТ НОRЅЕ",
        "𝖈𝖔𝖗𝖗𝖊𝖈𝖙 𝕙𝕠𝕣𝕤𝕖",
        "ⓒⓞⓡⓡⓔⓒⓣ ⒣⒪⒭⒮⒠",
        "🅒🅞🅡🅡🅔🅒🅣 🅷🅾🆁🆂🅴",
        "🇨🇴🇷🇷🇪🇨🇹 🇭🇴🇷🇸🇪",
        "cor\u3164rect\u115f hor\uffa0se",
        "ꓚꓳꓣꓣꓰꓚꓔ ꓧꓳꓣꓢꓰ",
        "có̈rréct\u200b\u2060 h0rsê",
        "c.o.r.r.e.c.t\n\u202eh/o/r/s/e",
    ],
)
def test_one_skeleton_for_all_that_looks_the_same(text: str) -> None:
    assert skeleton(text) == "correcthorse"


def test_letters_and_digits_that_are_easily_taken_for_another_count_as_one() -> None:
    assert skeleton("0O oо 1lI٣") == skeleton("oooo lll3")


@pytest.mark.parametrize(
    ("strange", "usual"),
    [
        ("асԁеғɡһіјкӏмпорԛгѕтѵԝху", "acdefghijklmnopqrstvwxy"),
        ("АВСЕНІЈКМОРЅТУХ", "abcehijkmopstyx"),
        ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abezhikmnoptyx"),
        ("αοιρυνκ", "aoipuvk"),
    ],
)
def test_letters_of_other_alphabets_count_as_the_latin_ones_they_look_like(strange: str, usual: str) -> None:
    assert [skeleton(char) for char in strange] == [skeleton(char) for char in usual]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("＜｜im_start｜＞", "<|im_start|>"),
        ("〈│ЅYSТЕМ│〉", "<|system|>"),
        ("⟦/INST⟧", "[/inst]"),
        ("Straße ﬁn", "straße ﬁn"),
    ],
)
def test_the_shape_keeps_signs_and_writes_them_plainly(text: str, plain: str) -> None:
    assert shape(text) == plain


@given(st.text())
def test_the_shape_is_as_long_as_the_text(text: str) -> None:
    assert len(shape(text)) == len(text)


@given(st.text())
def test_a_skeleton_is_only_letters_and_digits(text: str) -> None:
    bones = skeleton(text)
    assert bones == "" or bones.isalnum()
