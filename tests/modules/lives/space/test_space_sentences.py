"""Sentences are counted and cut at their ends, and what only echoes is taken from the beginning of a message."""

from __future__ import annotations

import pytest

from common.text import phrases

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
