"""The rules that read words decide the labelled cases as they were labelled, but for a few."""

from __future__ import annotations

import pytest

from bench.word_rules import FLOORS, MOST_ASKED, RULES, Split, is_asked, read_cases, score

CASES = read_cases()


@pytest.mark.parametrize("split", list(FLOORS))
@pytest.mark.parametrize("rule", list(RULES))
def test_a_rule_finds_what_it_should_and_little_else(rule: str, split: Split) -> None:
    figures = score(case for case in CASES if case.rule == rule and case.split == split)
    assert figures.cases >= 15
    assert min(figures.precision, figures.recall) >= FLOORS[split]


@pytest.mark.parametrize("split", list(FLOORS))
def test_a_judge_is_asked_about_few_echoes_and_never_where_the_words_are_plainly_the_same(split: Split) -> None:
    echoes = [case for case in CASES if case.rule == "echo" and case.split == split]
    asked = [case for case in echoes if is_asked(case)]
    assert 0 < len(asked) <= MOST_ASKED * len(echoes)
    assert any(case.expect for case in asked)
    assert sum(not case.expect for case in asked) >= len(asked) / 3
