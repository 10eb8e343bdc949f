"""The rules that read words decide the labelled cases as they were labelled, but for a few."""

from __future__ import annotations

import pytest

from bench.word_rules import FLOORS, RULES, Split, read_cases, score

CASES = read_cases()


@pytest.mark.parametrize("split", list(FLOORS))
@pytest.mark.parametrize("rule", list(RULES))
def test_a_rule_finds_what_it_should_and_little_else(rule: str, split: Split) -> None:
    figures = score(case for case in CASES if case.rule == rule and case.split == split)
    assert figures.cases >= 15
    assert min(figures.precision, figures.recall) >= FLOORS[split]
