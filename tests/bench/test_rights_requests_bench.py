"""The pre-filter finds what people ask about their own data, in labelled posts of many languages."""

from __future__ import annotations

from typing import get_args

import pytest

from bench.rights_requests import LEAST_RECALL, LEAST_RIGHT, Split, by_pre_filter, by_second_words, by_words, read_cases

CASES = read_cases()


@pytest.mark.parametrize("split", get_args(Split))
def test_nearly_all_requests_are_found(split: Split) -> None:
    told = by_pre_filter(case for case in CASES if case.split == split)
    assert told.recall >= LEAST_RECALL[split]
    assert told.is_fit


@pytest.mark.parametrize("split", get_args(Split))
def test_words_alone_tell_most_kinds(split: Split) -> None:
    assert by_words(case for case in CASES if case.split == split).recall >= LEAST_RIGHT


@pytest.mark.parametrize("split", get_args(Split))
def test_a_request_for_no_reply_is_found_beside_another_and_not_where_there_is_none(split: Split) -> None:
    told = by_second_words(case for case in CASES if case.split == split)
    assert told.recall >= LEAST_RIGHT
    assert told.passed == 0
