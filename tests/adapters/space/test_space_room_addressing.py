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
