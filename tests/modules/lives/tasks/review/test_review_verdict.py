"""How far a verdict may go: never further than the tests allow."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from adapters.github.types import ReviewEvent
from modules.lives.tasks.review.policy import event_for
from modules.services.coding.suites import SuiteState


@pytest.mark.parametrize(
    ("asked", "tests", "is_weakened", "is_whole"),
    [*product(get_args(ReviewEvent), get_args(SuiteState), (False, True), (False, True))],
)
def test_nothing_is_approved_that_fails_or_was_not_tried_and_what_fails_is_sent_back(
    asked: ReviewEvent, tests: SuiteState, *, is_weakened: bool, is_whole: bool
) -> None:
    event = event_for(asked, tests, is_weakened=is_weakened, is_whole=is_whole)
    is_tried = tests == "passed" or (tests == "none" and not is_weakened)
    assert (event == "APPROVE") is (asked == "APPROVE" and is_tried and is_whole)
    assert event == "REQUEST_CHANGES" if tests == "failed" else event in {asked, "COMMENT"}
