"""Proves that what is read from the arguments of `soul status` without Typer is what Typer reads from them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from soul.asked import StatusAsked, asked_status
from soul.command_line import app

WORDS = ("status", "--json", "--home", "--home=here", "-h", "--help", "--", "", "-", "-x", "here", "./a b", "/")
TYPER = typer.main.get_group(app)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=5))
@example(["--home", "here", "--json", "--home", "there"])
def test_what_is_understood_means_the_same_to_typer(words: list[str]) -> None:
    asked = asked_status(["status", *words])
    if asked is not None:
        context = TYPER.commands["status"].make_context("status", list(words))
        assert asked == StatusAsked(context.params["home"], context.params["json"])


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("status", StatusAsked(Path(), as_json=False)),
        ("status --json", StatusAsked(Path(), as_json=True)),
        ("status --home here", StatusAsked(Path("here"), as_json=False)),
        ("status --json --home here", StatusAsked(Path("here"), as_json=True)),
    ],
)
def test_the_usual_ways_to_ask_are_understood(words: str, asked: StatusAsked) -> None:
    assert asked_status(words.split()) == asked


@pytest.mark.parametrize(
    "words",
    ["", "run", "--json status", "status -h", "status --home", "status --home --json", "status here", "status --"],
)
def test_whatever_else_is_left_to_typer(words: str) -> None:
    assert asked_status(words.split()) is None
