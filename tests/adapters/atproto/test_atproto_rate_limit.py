"""The request budget: when it holds requests back, and that it always lets go again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.atproto.rate_limit import RateBudget, retry_after_s, should_gate
from adapters.atproto.types import RateLimitStatus
from common.clock import FakeClock


@pytest.mark.parametrize(
    ("remaining", "reset_epoch", "now", "gated"),
    [
        (300, 0, 1000, False),
        (20, 2000, 1000, False),
        (19, 2000, 1000, True),
        (0, 2000, 1999.9, True),
        (0, 2000, 2000, False),
        (0, 0, 1000, False),
    ],
)
def test_a_low_budget_gates_until_its_window_has_passed(
    remaining: int, reset_epoch: float, now: float, *, gated: bool
) -> None:
    assert should_gate(remaining, reset_epoch, now) is gated


def test_the_budget_starts_full_and_learns_from_headers(clock: FakeClock) -> None:
    budget = RateBudget(clock)
    assert budget.status == RateLimitStatus(300, 300, 0.0)
    budget.observe({"ratelimit-remaining": "0", "ratelimit-limit": "3000", "ratelimit-reset": "1767614460"})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460.0)
    budget.observe({})
    budget.observe({"ratelimit-remaining": "some", "ratelimit-limit": "-1", "ratelimit-reset": ""})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460.0)


def test_a_refusal_says_how_long_and_ends_with_the_window(clock: FakeClock) -> None:
    budget = RateBudget(clock)
    budget.hold(600)
    refusal = budget.refusal()
    assert refusal
    assert (refusal.kind, refusal.status, refusal.retry_after) == ("transient", 503, 600)
    clock.jump(600)
    assert budget.refusal() is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("60", 60.0),
        ("0", 0.0),
        ("Mon, 05 Jan 2026 12:01:30 GMT", 90.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_the_wait_asked_for_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}, FakeClock().now()) == seconds


def test_the_skew_is_positive_when_our_clock_is_ahead(clock: FakeClock) -> None:
    budget = RateBudget(clock)
    budget.observe_date({})
    budget.observe_date({"date": "yesterday"})
    assert budget.skew_s is None
    served = clock.now() - timedelta(seconds=90)
    budget.observe_date({"date": served.strftime("%a, %d %b %Y %H:%M:%S GMT")})
    assert budget.skew_s == 90
