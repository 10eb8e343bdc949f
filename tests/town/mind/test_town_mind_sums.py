"""Sums are worked out, and what only looks like one is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from town.mind.words import solve


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("What is 17 + 25?", "42"),
        ("what's 12 times 12", "144"),
        ("3 plus 4 minus 2 please", "5"),
        ("2+3*4", "14"),
        ("7 divided by 2?", "3.5"),
        ("10 / 3", "3.333"),
        ("5 \u2212 8", "-3"),
        ("9x9 = ?", "81"),
        ("100000 * 3", "300,000"),
        ("1 / 0", ""),
        ("It is 12:30.", ""),
        ("On 2026-01-05 it rained.", ""),
        ("I have 3 cats and a dog", ""),
        ("version 1.2+3", ""),
        ("and/or", ""),
        ("", ""),
    ],
)
def test_a_sum_in_words_or_signs(text: str, result: str) -> None:
    assert solve(text) == result


@given(st.integers(0, 10**9 - 1), st.sampled_from("+-*"), st.integers(0, 10**9 - 1))
def test_two_numbers_give_what_python_says(first: int, sign: str, second: int) -> None:
    expected = {"+": first + second, "-": first - second, "*": first * second}[sign]
    assert solve(f"So: {first} {sign} {second}?").replace(",", "") == str(expected)
