"""Posts labelled by hand: two thirds for work on the rules (`dev`), the others only for measurement (`held-out`)."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from common.json_lines import split_lines
from tests.project import ROOT

Split = Literal["dev", "held-out"]


@dataclass(frozen=True, slots=True)
class AskedCase:
    """A post, and what it asks about its author's own data; `none` for a look-alike."""

    language: str
    kind: str
    split: Split
    text: str


@dataclass(frozen=True, slots=True)
class WordCase:
    """A text; for an echo, `other` is what a peer said before. `expect` is empty if a rule must say no."""

    id: str
    rule: str
    split: Split
    hard: bool
    text: str
    expect: frozenset[str]
    other: str = ""


def asked_cases() -> list[AskedCase]:
    """Return posts in fifteen languages; a quarter are about forgetting and the like and ask for nothing."""
    return [AskedCase(**row) for row in _rows("rights_requests")]


def word_cases() -> list[WordCase]:
    """Return the texts with their expected results: a yes, or the addresses that each holds."""
    return [WordCase(**row | {"expect": _expected(row["expect"])}) for row in _rows("word_rules")]


def yes(*, said: bool) -> frozenset[str]:
    """Return the result of a rule that only says yes or no."""
    return frozenset({"yes"}) if said else frozenset()


def _expected(told: object) -> frozenset[str]:
    return frozenset(map(str, told)) if isinstance(told, list) else yes(said=told in {True, "same"})


def _rows(name: str) -> list[dict[str, Any]]:
    lines = split_lines((ROOT / "tests" / "data" / f"{name}.jsonl").read_text(encoding="utf-8"))
    return [json.loads(line) for line in lines]
