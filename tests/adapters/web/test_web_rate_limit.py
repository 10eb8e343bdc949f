"""The request budget of a service: when it holds requests back, and that it always lets go again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.atproto.xrpc import RATE_LIMIT as BLUESKY
from adapters.github.sending import RATE_LIMIT as GITHUB
from adapters.web.spacing import RateLimitRules, RateLimitStatus, RequestBudget, retry_after_s
from common.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.mark.parametrize(
    ("rules", "remaining", "limit", "reset_in_s", "gated"),
    [
        (BLUESKY, 20, 3000, 1000, False),
        (BLUESKY, 19, 3000, 1000, True),
        (BLUESKY, 0, 3000, 1, True),
        (BLUESKY, 0, 3000, 0, False),
        (GITHUB, 100, 5000, 1000, False),
        (GITHUB, 99, 5000, 1000, True),
        (GITHUB, 6, 60, 1000, False),
        (GITHUB, 5, 60, 1, True),
        (GITHUB, 5, 60, 0, False),
    ],
)
def test_a_low_budget_gates_until_its_window_has_passed(
    clock: FakeClock, rules: RateLimitRules, remaining: int, limit: int, reset_in_s: int, *, gated: bool
) -> None:
    budget = RequestBudget(clock, rules)
    assert budget.refusal() is None
    reset = int(clock.now().timestamp()) + reset_in_s
    told = {"remaining": remaining, "limit": limit, "reset": reset}
    budget.observe({f"{rules.prefix}{name}": str(value) for name, value in told.items()})
    assert (budget.refusal() is not None) is gated
    assert budget.status == RateLimitStatus(remaining if reset_in_s else limit, limit, reset)


def test_the_budget_of_another_resource_is_not_ours(clock: FakeClock) -> None:
    budget = RequestBudget(clock, GITHUB)
    budget.observe({"x-ratelimit-resource": "search", "x-ratelimit-remaining": "0", "x-ratelimit-limit": "30"})
    assert budget.status == RateLimitStatus(5000, 5000, 0)


def test_the_budget_starts_full_and_learns_from_headers(clock: FakeClock) -> None:
    budget = RequestBudget(clock, BLUESKY)
    assert budget.status == RateLimitStatus(300, 300, 0)
    budget.observe({"ratelimit-remaining": "0", "ratelimit-limit": "3000", "ratelimit-reset": "1767614460"})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460)
    budget.observe({})
    budget.observe({"ratelimit-remaining": "some", "ratelimit-limit": "-1", "ratelimit-reset": ""})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460)


async def test_a_hold_says_how_long_and_ends_in_time(clock: FakeClock) -> None:
    budget = RequestBudget(clock, BLUESKY)
    budget.hold(600)
    refusal = budget.refusal()
    assert refusal
    assert (refusal.kind, refusal.status, refusal.retry_after) == ("transient", 503, 600)
    await clock.advance(600)
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
    budget = RequestBudget(clock, BLUESKY)
    budget.observe_date({})
    budget.observe_date({"date": "yesterday"})
    assert budget.skew_s is None
    served = clock.now() - timedelta(seconds=90)
    budget.observe_date({"date": served.strftime("%a, %d %b %Y %H:%M:%S GMT")})
    assert budget.skew_s == 90
