"""Proves that what is read from the arguments of `soul status` without Typer is what Typer reads from them."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from hypothesis import example, given
from hypothesis import strategies as st

from soul.command_line import app
from soul.status_arguments import StatusArguments, read_status_arguments

WORDS = (
    "status",
    "--json",
    "--loops",
    "--home",
    "--home=here",
    "~/here",
    "-h",
    "--help",
    "--",
    "",
    "-",
    "-x",
    "here",
    "./a b",
    "/",
)
TYPER = typer.main.get_group(app)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=5))
@example(["--home", "here", "--json", "--home", "there"])
def test_what_is_understood_means_the_same_to_typer(words: list[str]) -> None:
    asked = read_status_arguments(["status", *words])
    if asked is not None:
        context = TYPER.commands["status"].make_context("status", list(words))
        assert asked == StatusArguments(*(context.params[name] for name in ("root", "as_json", "with_loops")))


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("status", StatusArguments(Path(), as_json=False)),
        ("status --json", StatusArguments(Path(), as_json=True)),
        ("status --loops", StatusArguments(Path(), as_json=False, with_loops=True)),
        ("status --home here", StatusArguments(Path("here"), as_json=False)),
        ("status --json --home here", StatusArguments(Path("here"), as_json=True)),
    ],
)
def test_the_usual_ways_to_ask_are_understood(words: str, asked: StatusArguments) -> None:
    assert read_status_arguments(words.split()) == asked


@pytest.mark.parametrize(
    "words",
    ["", "run", "--json status", "status -h", "status --home", "status --home --json", "status here", "status --"],
)
def test_whatever_else_is_left_to_typer(words: str) -> None:
    assert read_status_arguments(words.split()) is None
