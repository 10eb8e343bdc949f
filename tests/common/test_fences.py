"""Proves which lines are code, by one rule for every page that this program cuts at its headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.text.fences import fenced, opens

_LINES = st.lists(st.sampled_from(["```", "```py", "````", "~~~", "~~~~ ", "    ```", "```a```", "# x", "word", ""]))


@pytest.mark.parametrize(
    ("page", "inside"),
    [
        ("a|```|b|```|c", "01110"),
        ("```py|b|```|c", "1110"),
        ("```|b|~~~|```", "1111"),
        ("````|```|````", "111"),
        ("```|b|````|c", "1110"),
        ("```|b|```py", "000"),
        ("```|b", "00"),
        ("```|~~~|b|~~~", "0111"),
        ("    ```|b|```|c|```", "00111"),
        ("```a```|b|```", "000"),
        ("   ~~~|b|   ~~~ |c", "1110"),
        ("", "0"),
    ],
)
def test_a_block_reaches_from_its_fence_to_the_one_that_closes_it(page: str, inside: str) -> None:
    assert fenced(page.split("|")) == [mark == "1" for mark in inside]


@given(_LINES)
def test_each_block_begins_and_ends_with_a_fence_and_an_open_end_swallows_nothing(lines: list[str]) -> None:
    inside = fenced(lines)
    assert len(inside) == len(lines)
    if inside and inside[-1]:
        assert opens(lines[-1].strip()) is not None
    for before, (line, mark) in zip([False, *inside], zip(lines, inside, strict=True), strict=False):
        if mark and not before:
            assert opens(line) is not None
    assert fenced([*lines, "# end"])[-1] is False
