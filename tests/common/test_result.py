"""What adapters answer and what rules decide, and how both read at the place of use."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from common.result import ApiResult, Decision, Err, Ok


def test_success_tells_an_answer_from_a_failure() -> None:
    answers: list[ApiResult[int]] = [Ok(3), Err("503 from the service", "transient", status=503, retry_after=2.0)]
    assert [answer.success for answer in answers] == [True, False]


def test_a_failure_carries_all_that_a_caller_needs_to_try_again() -> None:
    failure = Err("slow down", "transient", status=429, retry_after=7.5)
    assert (failure.error, failure.kind, failure.status, failure.retry_after) == ("slow down", "transient", 429, 7.5)


@pytest.mark.parametrize("should", [True, False])
def test_a_decision_can_stand_in_an_if(should: bool) -> None:  # noqa: FBT001 - a table of both
    assert bool(Decision(should, "a reason")) is should


@pytest.mark.parametrize("value", [Ok(1), Err("no", "auth"), Decision(should=True, reason="yes")])
def test_values_cannot_be_changed_after_the_fact(value: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(value)[0].name, 2)
