"""Whom the host means, by an `@` or by a name alone."""

from __future__ import annotations

import pytest

from adapters.space.room_addressing import parse_addressed

NAMES = ["Bob", "sh-marvin", "marvin", "Zoë", "dr. no", "sh"]


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        ("hi @bob, and @BOB", ["Bob"]),
        ("bobsled", []),
        ("Bob's idea", ["Bob"]),
        ("@sh-marvin please", ["sh-marvin"]),
        ("sh-marvin please", ["sh-marvin"]),
        ("@marvin then @bob", ["marvin", "Bob"]),
        ("marvin then bob", ["Bob", "marvin"]),
        ("ask @bob.", ["Bob"]),
        ("zoë!", ["Zoë"]),
        ("Zoëlle", []),
        ("what says Dr. No?", ["dr. no"]),
        ("@nobody", []),
        ("@sh-rebecca", ["sh"]),
        ("a.b@c", []),
    ],
)
def test_whom_the_host_means(content: str, meant: list[str]) -> None:
    assert parse_addressed(content, NAMES) == meant


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        ("@marvin please", ["marvin"]),
        ("@Marvin please", ["Marvin"]),
        ("@MARVIN please", ["Marvin", "marvin"]),
        ("marvin, please", ["marvin"]),
        ("Marvin, please", ["Marvin"]),
        ("MARVIN, please", ["Marvin", "marvin"]),
        ("@Marvin and marvin", ["Marvin", "marvin"]),
        ("@marvin.", ["marvin"]),
    ],
)
def test_of_names_that_differ_in_case_the_one_spelled_so_is_meant(content: str, meant: list[str]) -> None:
    assert parse_addressed(content, ["Marvin", "marvin"]) == meant
