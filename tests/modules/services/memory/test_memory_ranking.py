"""Proves which words a search goes by, and which memory comes first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.clock import iso
from modules.services.memory import policy
from modules.services.memory.policy import FEW, HELPERS, Candidate, SearchPlan, Term
from tests.exploration import examples

NOW = datetime(2026, 1, 5, tzinfo=UTC)
RARE, SOME, MANY, MOST = Term("rare", 3), Term("some", 90), Term("many", 400), Term("most", 5000)


@pytest.mark.parametrize(
    ("terms", "total", "anchors", "common"),
    [
        ([MOST, RARE], 10_000, [RARE], [MOST]),
        ([MOST, MANY, SOME, RARE], 10_000, [RARE, SOME], [MANY, MOST]),
        ([SOME, MANY], 10_000, [SOME], [MANY]),
        ([MOST], 10_000, [], [MOST]),
        ([SOME, RARE], 100, [RARE], [SOME]),
        ([Term("nobody", 0), RARE], 100, [RARE], []),
        ([], 0, [], []),
    ],
)
def test_rare_words_anchor_a_search_and_common_ones_only_where_there_is_no_rarer(
    terms: list[Term], total: int, anchors: list[Term], common: list[Term]
) -> None:
    assert policy.plan(terms, total) == SearchPlan(tuple(anchors), tuple(common))


@given(st.lists(st.integers(0, 10**6), max_size=16), st.integers(0, 10**6))
def test_what_is_weighed_one_by_one_is_bounded_whatever_is_asked(counts: list[int], total: int) -> None:
    terms = [Term(str(number), count) for number, count in enumerate(counts)]
    plan = policy.plan(terms, total)
    assert sum(term.count for term in plan.anchors) <= FEW
    assert len(plan.common) <= HELPERS
    assert bool(plan.anchors or plan.common) == any(counts)
    assert len(policy.together(plan.common)) <= HELPERS + 2


@pytest.mark.parametrize(
    ("common", "groups"),
    [
        ((RARE,), [(RARE,)]),
        ((RARE, SOME), [(RARE, SOME), (RARE,), (SOME,)]),
        ((RARE, SOME, MANY), [(RARE, SOME, MANY), (RARE, SOME), (RARE,), (SOME,), (MANY,)]),
    ],
)
def test_common_words_are_sought_together_and_alone(common: tuple[Term, ...], groups: list[tuple[Term, ...]]) -> None:
    assert policy.together(common) == groups


@pytest.mark.parametrize(("days", "left"), [(0, 1.0), (-5, 1.0), (15, 0.5**0.5)])
def test_half_of_the_weight_is_left_after_thirty_days(days: int, left: float) -> None:
    assert policy.decay(iso(NOW - timedelta(days=days)), NOW) == pytest.approx(left)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_rarer_word_is_worth_more_and_no_word_is_worth_nothing(one: int, other: int, total: int) -> None:
    rarer, commoner = sorted((one, other))
    assert policy.rarity(rarer, max(total, other, one)) >= policy.rarity(commoner, max(total, other, one)) > 0


@given(
    st.lists(
        st.builds(
            Candidate,
            st.integers(1, 50),
            st.floats(0, 20),
            st.integers(1, 5),
            st.integers(-3, 800).map(lambda days: iso(NOW - timedelta(days=days))),
        ),
        max_size=60,
        unique_by=lambda one: one.id,
    ),
    st.integers(1, 20),
)
@settings(max_examples=examples(200))
def test_the_best_are_those_that_weighing_all_would_find(candidates: list[Candidate], limit: int) -> None:
    def merit(one: Candidate) -> tuple[float, str, int]:
        return one.weight * one.importance * policy.decay(one.updated_at, NOW), one.updated_at, one.id

    expected = [one.id for one in sorted(candidates, key=merit, reverse=True)[:limit]]
    assert policy.best(candidates, NOW, limit) == expected
