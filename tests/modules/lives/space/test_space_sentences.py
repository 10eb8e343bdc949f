"""Sentences are counted and cut at their ends, and what only echoes is taken from the beginning of a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text import phrases
from common.text.phrases import without_first
from common.text.utf16 import u16_len

SUBSTANCE = (
    "Nightly backups verify checksums before rotating archives offsite, retention windows shrink storage bills, "
    "and restore drills prove everything works."
)


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ("", 0),
        ("no end", 0),
        ("One. Two! Three?", 3),
        ("Wait... what?!", 2),
        ("See https://example.com/a.b.c; then https://example.com/d.", 2),
        ("One; two; three", 2),
        ("v1.2.3 is out", 0),
        ('He said "stop." Then left.', 2),
        ("終わり。始まり\uff01", 2),
    ],
)
def test_sentences_are_counted_by_their_ends(message: str, count: int) -> None:
    assert phrases.count_sentences(message) == count


@pytest.mark.parametrize(
    ("message", "chars", "sentences", "trimmed"),
    [
        ("One. Two. Three", 1000, 9, "One. Two."),
        ("One. Two. Three.", 1000, 2, "One. Two."),
        ("One. Two. Three.", 9, 9, "One. Two."),
        ("One. Two. Three.", 8, 9, "One."),
        ("One. Two.", 3, 9, ""),
        ("One. Two; three. Four.", 100, 2, "One."),
        ("One. Two.", 100, 0, ""),
        ("no end", 100, 9, ""),
        ("\U0001f3a8. b.", 3, 9, "\U0001f3a8."),
        ("\U0001f3a8. b.", 2, 9, ""),
    ],
)
def test_a_message_is_cut_between_sentences(message: str, chars: int, sentences: int, trimmed: str) -> None:
    assert phrases.auto_trim(message, chars, sentences) == trimmed


@given(st.text(alphabet="ab.!?; \n\U0001f3a8", max_size=80), st.integers(0, 60), st.integers(0, 8))
def test_what_is_left_is_a_beginning_of_whole_sentences_and_no_more_would_fit(
    message: str, chars: int, sentences: int
) -> None:
    trimmed = phrases.auto_trim(message, chars, sentences)
    count = phrases.count_sentences(trimmed)
    assert message.startswith(trimmed)
    assert u16_len(trimmed) <= chars
    assert count <= sentences
    assert trimmed[-1:] in {"", ".", "!", "?"}
    assert phrases.auto_trim(trimmed, chars, sentences) == trimmed
    longer = [phrases.auto_trim(message, len(message) * 2, more) for more in range(count + 1, len(message) + 1)]
    assert all(one == trimmed or u16_len(one) > chars or phrases.count_sentences(one) > sentences for one in longer)


@pytest.mark.parametrize(
    ("message", "rest"),
    [
        ("Exactly. The cache.", "The cache."),
        ("Exactly\nThe cache.", "The cache."),
        ("Exactly! The cache.\nMore.", "The cache.\nMore."),
        ("Only one", ""),
        ("Only one.", ""),
    ],
)
def test_the_first_sentence_or_line_is_taken_away(message: str, rest: str) -> None:
    assert without_first(message) == rest


def test_a_message_with_substance_loses_only_its_echoing_beginning() -> None:
    assert phrases.without_opener(f"Great point. {SUBSTANCE}", ["Backups need care"]) == SUBSTANCE
    assert phrases.without_opener(f"Great point. I agree!\n{SUBSTANCE}", []) == SUBSTANCE


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Great point. Backups need checksums.", []),
        (f"Great point, {SUBSTANCE}", []),
        (f"Great point. {SUBSTANCE}", [SUBSTANCE]),
        (f"Great point. - {SUBSTANCE}", []),
        ("Exactly", []),
    ],
    ids=["too little", "one sentence", "nothing new", "a list", "nothing else"],
)
def test_an_echo_without_substance_of_its_own_cannot_be_mended(message: str, said: list[str]) -> None:
    assert phrases.without_opener(message, said) == ""


def test_names_are_no_news() -> None:
    names = [f"agent{number}x" for number in range(20)]
    said = ["backups checksums archives retention windows storage"]
    message = f"Exactly. {said[0]} {said[0]} {' '.join(names)}"
    assert phrases.without_opener(message, said)
    assert phrases.without_opener(message, said, names) == ""
