"""Tests of small string rules, and of the keys by which two texts count as the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text.strings import (
    create_slug,
    dedup_key,
    is_given_in,
    normalize_post_text,
    normalize_quotes,
    straighten,
)


def test_curly_apostrophes_are_made_plain() -> None:
    assert straighten("I’m ‘here’") == "I'm 'here'"  # noqa: RUF001 - the signs meant


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("@ada.bsky.social LOOK at https://x.com/1 and  github.com/o/r  today", "look at and today"),
        ("Same", "same"),
        ("@ada.bsky.social", ""),
        ("a" * 250, "a" * 200),
        ("", ""),
    ],
)
def test_for_comparison_only_prose_counts(text: str, prose: str) -> None:
    assert normalize_post_text(text) == prose


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello  World", "hello world"),
        ("look https://example.com/a", "look  https://www.example.com/a/"),
        ("look https://example.com/a.", "look https://example.com/a"),
        ("hello @Ada.example.social!", "Hello  @ada.example.social!"),
        ("see example.com/a", "see https://example.com/a"),
    ],
)
def test_texts_that_say_the_same_have_the_same_key(one: str, other: str) -> None:
    assert dedup_key(one) == dedup_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("done: https://example.com/1", "done: https://example.com/2"),
        ("https://example.com/1", "https://example.com/2"),
        ("done: github.com/o/r/1", "done: github.com/o/r/2"),
        ("@ada.example.social", "@bob.example.social"),
        ("Welcome @ada.example.social to the weir", "Welcome @bob.example.social to the weir"),
        ("hello", "hello @ada.example.social"),
        ("a" * 250, "a" * 200 + "b" * 50),
        ("yes", "no"),
    ],
)
def test_texts_that_differ_in_link_handle_or_ending_are_different(one: str, other: str) -> None:
    assert dedup_key(one) != dedup_key(other)


def test_the_same_words_under_another_image_are_another_post() -> None:
    assert dedup_key("Look", "image-1") != dedup_key("Look", "image-2")
    assert dedup_key("Look", "image-1") == dedup_key("look", "image-1")


@given(st.text())
def test_a_key_never_says_what_the_text_was(text: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", dedup_key(text))


def test_half_a_surrogate_pair_still_has_a_key() -> None:
    assert len(dedup_key("broken \ud83d text")) == 64


def test_typographic_quotation_marks_become_plain_and_nothing_else_changes() -> None:
    assert normalize_quotes("I\u2019ll say \u201cyes\u201d \u2014 \u2018no\u2019 …") == "I'll say \"yes\" \u2014 'no' …"


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Fix & ship: colour/size", "fix-and-ship-colour-size"),
        ("Create LIL-INTDEV-AGENTS.md", "create-lil-intdev-agentsmd"),
        ("Über  die Straße", "uber-die-strasse"),
        ("a·b/c_d,e:f;g", "a-b-c-d-e-f-g"),
        (" -- a -- b! -- ", "a-b"),
        ("", "untitled"),
        ("✨", "untitled"),
    ],
)
def test_a_slug_is_what_a_branch_can_be_called(text: str, slug: str) -> None:
    assert create_slug(text) == slug


@pytest.mark.parametrize(
    ("said", "is_given"),
    [
        ("Post about tides tomorrow morning at 9", False),
        ("about tides", False),
        ("Post this: about  tides", True),
        ("Post „about tides“ at 9", True),
        ("Publie « about tides »", True),
        ('Don\'t say "about tides and moss"', False),
        ("At 9: about tides, and follow @kit.test", False),
        ("note: tides. Post: about tides", True),
    ],
)
def test_words_are_given_between_quotation_marks_or_as_all_after_a_colon(said: str, *, is_given: bool) -> None:
    assert is_given_in("about tides", said) is is_given
    assert not is_given_in(" ", said)
