"""Proves that a verdict never goes further than the tests allow."""

from itertools import product
from typing import get_args

import pytest

from adapters.github.types import ReviewEvent
from modules.lives.tasks.review.judge import event_for
from modules.services.coding.suites import SuiteState


@pytest.mark.parametrize(
    ("asked", "tests", "is_weakened", "is_whole", "is_documents"),
    [*product(get_args(ReviewEvent), get_args(SuiteState), *[(False, True)] * 3)],
)
def test_nothing_is_approved_that_breaks_tests_or_is_code_that_nothing_tried_and_what_fails_is_sent_back(
    asked: ReviewEvent, tests: SuiteState, *, is_weakened: bool, is_whole: bool, is_documents: bool
) -> None:
    event = event_for(asked, tests, is_weakened=is_weakened, is_whole=is_whole, is_documents=is_documents)
    allowed = {"passed", "failing_before", *(["unrun"] * is_documents), *(["none"] * (not is_weakened))}
    assert (event == "APPROVE") is (asked == "APPROVE" and tests in allowed and is_whole)
    assert event == "REQUEST_CHANGES" if tests == "failed" else event in {asked, "COMMENT"}
