"""Sentences are counted and cut at their ends, and what only echoes is taken from the beginning of a message."""

from __future__ import annotations

import pytest

from common.text import phrases
from common.text.phrases import without_first

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
