"""No text of others makes a regular expression of the product slow."""

from __future__ import annotations

import re

import pytest
import regex

from tests.cpu_time import cpu_s
from tests.security.product_patterns import Found, Hostile, hostile_texts, literals, product_patterns

LIMIT_S = 0.030
MOST_GROWTH, SLOWEST_S = 3.0, 4 * LIMIT_S
"""Twice the text takes a linear pattern twice as long, a quadratic one four times."""
CHARS, GLANCE_CHARS = 4_000, 500
# NOTE(self): the mildest of the bad patterns take more than 30 ms for 4,000 characters on slow machines only.
LONGER = 4 * CHARS
PAIRS = 8
ATTEMPTS = 5
FEWEST = 250


def took(found: Found, text: str) -> float:
    return cpu_s(lambda: found.run(text))


def is_slow(found: Found, hostile: Hostile, chars: int) -> bool:
    """Whether the fastest of several attempts is too slow, so that a busy machine decides nothing.

    A short text tells first: what takes a quadratic pattern 30 ms takes it a sixty-fourth of that for an eighth. On a
    slow machine a linear pattern may need more as well: then half the text tells, which takes it about half the time.
    """
    if took(found, hostile.of(GLANCE_CHARS)) < LIMIT_S / (chars / GLANCE_CHARS) ** 2 / 2:
        return False
    text = hostile.of(chars)
    if took(found, text) <= LIMIT_S:
        return False
    whole_s, half_s = (min(took(found, one) for _ in range(ATTEMPTS)) for one in (text, hostile.of(chars // 2)))
    return whole_s > LIMIT_S and (whole_s > MOST_GROWTH * half_s or whole_s > SLOWEST_S)


def slow_text(found: Found, chars: int = CHARS) -> str | None:
    texts = hostile_texts(found.pattern.pattern, pairs=PAIRS)
    return next((one.of(GLANCE_CHARS) for one in texts if is_slow(found, one, chars)), None)


@pytest.mark.perf
@pytest.mark.timeout(300)
def test_every_pattern_of_the_product_reads_four_thousand_hostile_characters_at_once() -> None:
    found = product_patterns()
    assert len(found) >= FEWEST
    slow = {one.where: text[:40] for one in found if (text := slow_text(one)) is not None}
    assert slow == {}


@pytest.mark.perf
@pytest.mark.parametrize(
    ("pattern", "chars"),
    [
        (re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/\S*"), CHARS),
        (re.compile(r"\bsk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}(?:sk-)*"), LONGER),
        (re.compile(r"[^.!?\n]*\?"), LONGER),
        (re.compile(r"^\s*(?:[-*>]\s*)?(?:user|you)\s*:\s", re.MULTILINE), CHARS),
        (
            re.compile(
                r"\b(?:should|could|can|would be great)\b.*"
                r"\b(?:issue|plan|ticket|fix|repair|sorted out|write (?:this|that|it) up)",
                re.IGNORECASE,
            ),
            CHARS,
        ),
        (regex.compile(r"\b[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}/\S*"), CHARS),
    ],
)
def test_a_pattern_without_bounds_is_found(pattern: re.Pattern[str] | regex.Pattern[str], chars: int) -> None:
    assert slow_text(Found("here", pattern), chars) is not None


@pytest.mark.slow
def test_patterns_are_found_wherever_they_stand() -> None:
    places = {one.where for one in product_patterns()}
    assert "common.text.closings._LINK" in places
    assert any(place.startswith("common.redact._KEY_SHAPES[") for place in places)
    assert any(place.startswith("common/text/strings.py:") for place in places)


def test_hostile_texts_have_their_length_and_the_words_of_the_pattern() -> None:
    pattern = r"\beyJ[A-Za-z0-9_-]{8,}\.(?:alpha|beta)"
    assert {"eyJ", "alpha", "beta"} <= set(literals(pattern))
    texts = [one.of(CHARS) for one in hostile_texts(pattern, pairs=PAIRS)]
    assert {len(text) for text in texts} == {CHARS}
    assert len(texts) > 100
