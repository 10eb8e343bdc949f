"""Secrets never leave: not plain, not encoded, not as a key of unknown origin."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.redact import MASK, MIN_SECRET_LENGTH, Redactor

SECRET = "correct horse/battery+staple"
RAW = SECRET.encode()


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        SECRET.upper(),
        RAW.hex(),
        RAW.hex().upper(),
        quote(SECRET, safe=""),
        base64.b64encode(RAW).decode(),
        base64.urlsafe_b64encode(RAW).decode(),
    ],
)
def test_a_known_secret_is_masked_in_every_plain_encoding(form: str) -> None:
    redactor = Redactor([SECRET])
    assert redactor.finds(f"before {form} after")
    cleaned = redactor.text(f"before {form} after")
    assert form.rstrip("=") not in cleaned
    assert cleaned.startswith(f"before {MASK}")
    assert cleaned.endswith(" after")


@pytest.mark.parametrize(
    "key",
    [
        "sk-" + "a1B2" * 8,
        "sk-proj-" + "a1B2" * 8,
        "ghp_" + "x" * 36,
        "github_pat_" + "x" * 40,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "abcd-1234-efgh-5678",
        "Authorization: Bearer abcdefghijklmnopqrst",
    ],
)
def test_what_looks_like_a_key_is_masked_even_if_nobody_told_us(key: str) -> None:
    assert Redactor().finds(key)
    assert MASK in Redactor().text(key)
    assert not Redactor().finds(Redactor().text(key))


@pytest.mark.parametrize(
    "harmless",
    [
        "A perfectly ordinary sentence about task-oriented work.",
        "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3jt5tsfznls2r",
        "https://bsky.app/profile/someone.bsky.social/post/3jt5tsfznls2r",
        "well-made-longer-words",
        "",
    ],
)
def test_ordinary_text_passes_untouched(harmless: str) -> None:
    redactor = Redactor([SECRET])
    assert not redactor.finds(harmless)
    assert redactor.text(harmless) == harmless


def test_short_values_are_no_secrets_lest_every_word_be_masked() -> None:
    assert Redactor(["a" * (MIN_SECRET_LENGTH - 1), ""]).text("aaaaa aaaaa") == "aaaaa aaaaa"


def test_a_value_is_cleaned_at_every_depth_and_otherwise_kept() -> None:
    value = {"a": [SECRET, 1, None, True], SECRET: {"b": (f"x {SECRET}",)}}
    assert Redactor([SECRET]).value(value) == {"a": [MASK, 1, None, True], MASK: {"b": [f"x {MASK}"]}}


def test_the_redactor_never_shows_what_it_knows() -> None:
    assert SECRET not in repr(Redactor([SECRET]))


@given(
    secret=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=MIN_SECRET_LENGTH, max_size=40),
    around=st.text(max_size=20),
)
def test_no_text_keeps_a_known_secret(secret: str, around: str) -> None:
    cleaned = Redactor([secret]).text(around + secret + around)
    assert secret not in cleaned.replace(MASK, "")
