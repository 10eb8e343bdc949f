"""Proves the rules of the day's budget: the ladder, who is let through, how long an answer may be, when a day ends."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.importance import Importance
from modules.runtime.budget.policy import (
    LADDER,
    USEFUL_TOKENS,
    Leave,
    day_of,
    fraction,
    is_news,
    may_ask,
    room_for_output,
    seconds_left,
    settled,
    step_at,
    surely_kept,
    takes_cheaper,
    weigh,
)
from modules.runtime.budget.prices import Price
from modules.runtime.budget.types import Caps, Spent, Step
from modules.runtime.llm.dialect import Usage


@pytest.mark.parametrize(
    ("used", "step"),
    [
        (69_999, "normal"),
        (70_000, "cheaper"),
        (85_000, "pressing"),
        (95_000, "owner_only"),
        (99_999, "owner_only"),
        (100_000, "listen"),
    ],
)
def test_each_step_begins_exactly_at_its_percentage(used: int, step: Step) -> None:
    assert step_at(fraction(Spent(used), Caps(100_000))) == step


@pytest.mark.parametrize(
    ("spent", "caps", "expected"),
    [
        (Spent(50, 999), Caps(100), Fraction(1, 2)),
        (Spent(50, 999), Caps(100, 1000), Fraction(999, 1000)),
        (Spent(50, 1), Caps(100, 1000), Fraction(1, 2)),
        (Spent(0, 0), Caps(0), Fraction(1)),
        (Spent(0, 0), Caps(100, 0), Fraction(1)),
    ],
)
def test_the_fuller_of_tokens_and_dollars_decides_and_a_cap_of_nothing_is_full(
    spent: Spent, caps: Caps, expected: Fraction
) -> None:
    assert fraction(spent, caps) == expected


@pytest.mark.parametrize(
    ("step", "allowed"),
    [
        ("normal", {"own", "stranger", "commitment", "mention", "owner"}),
        ("cheaper", {"own", "stranger", "commitment", "mention", "owner"}),
        ("pressing", {"stranger", "commitment", "mention", "owner"}),
        ("owner_only", {"owner"}),
        ("listen", set()),
    ],
)
def test_the_less_is_left_the_more_pressing_a_call_must_be(step: Step, allowed: set[Importance]) -> None:
    everybody: tuple[Importance, ...] = ("own", "stranger", "commitment", "mention", "owner")
    assert {importance for importance in everybody if may_ask(step, importance)} == allowed


def test_the_cheaper_model_thinks_from_its_step_on() -> None:
    assert [takes_cheaper(step) for step, _ in LADDER] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("room", "wanted", "leave"),
    [
        (5000, 1024, Leave("normal", 1024)),
        (1024, 1024, Leave("normal", 1024)),
        (USEFUL_TOKENS, 1024, Leave("normal", USEFUL_TOKENS)),
        (USEFUL_TOKENS - 1, 1024, Leave("listen", 0)),
        (-7, 1024, Leave("listen", 0)),
    ],
)
def test_an_answer_is_shortened_to_what_fits_as_long_as_it_stays_useful(room: int, wanted: int, leave: Leave) -> None:
    assert weigh("normal", room=room, wanted=wanted) == leave


_COSTS = st.fractions(min_value=0, max_value=600, max_denominator=1000)


@given(
    spent=st.builds(Spent, st.integers(0, 10**6), st.integers(0, 10**7)),
    caps=st.builds(Caps, st.integers(0, 10**6), st.none() | st.integers(0, 10**7)),
    price=st.none() | st.builds(Price, _COSTS, _COSTS, _COSTS),
    input_tokens=st.integers(0, 10**6),
)
def test_what_fits_never_passes_a_cap_and_one_token_more_would(
    spent: Spent, caps: Caps, price: Price | None, input_tokens: int
) -> None:
    room = room_for_output(spent, caps, price, input_tokens)

    def within(output: int) -> bool:
        tokens = spent.tokens + input_tokens + output <= caps.tokens
        if caps.micro_usd is None or price is None:
            return tokens
        return tokens and spent.micro_usd + price.cost(input_tokens, output) <= caps.micro_usd

    assert room < 0 or within(room)
    assert not within(max(room + 1, 0))


@pytest.mark.parametrize(
    ("usage", "weight", "expected"),
    [
        (Usage(900, 40), 100, (900, 40)),
        (None, 100, (5000, 100)),
        (Usage(0, 0), 100, (5000, 100)),
        (Usage(900, 0), 100, (900, 100)),
        (Usage(6000, 2000), 100, (6000, 2000)),
    ],
)
def test_what_the_service_does_not_count_is_taken_at_its_upper_bound(
    usage: Usage | None, weight: int, expected: tuple[int, int]
) -> None:
    assert settled(usage, weight=weight, input_tokens=5000, output_tokens=1000) == expected


@pytest.mark.parametrize(
    ("usage", "kept"),
    [
        (None, 0),
        (Usage(900, 1, cached_tokens=900), 900),
        (Usage(900, 1, cached_tokens=901), 0),
        (Usage(900, 1, cached_tokens=-5), 0),
    ],
)
def test_no_more_was_kept_than_was_sent_and_nothing_where_that_was_not_counted(usage: Usage | None, kept: int) -> None:
    assert surely_kept(usage) == kept


@pytest.mark.parametrize(
    ("step", "today", "before", "news"),
    [
        ("normal", None, None, False),
        ("normal", None, "cheaper", True),
        ("normal", "normal", "listen", False),
        ("cheaper", None, None, True),
        ("cheaper", "normal", None, True),
        ("pressing", "listen", None, False),
        ("listen", "owner_only", None, True),
        ("cheaper", "a word of another version", None, True),
    ],
)
def test_a_step_is_told_once_a_day_and_only_upwards(
    step: Step, today: str | None, before: str | None, *, news: bool
) -> None:
    assert is_news(step, told_today=today, told_before=before) is news


@pytest.mark.parametrize(
    ("moment", "timezone", "day"),
    [
        ("2026-01-05T23:59:59+00:00", "UTC", "2026-01-05"),
        ("2026-01-05T23:59:59+00:00", "Pacific/Auckland", "2026-01-06"),
        ("2026-01-06T04:59:00+00:00", "America/New_York", "2026-01-05"),
        ("2026-01-06T05:00:00+00:00", "America/New_York", "2026-01-06"),
    ],
)
def test_the_day_is_the_owners(moment: str, timezone: str, day: str) -> None:
    assert day_of(datetime.fromisoformat(moment), timezone) == day


@pytest.mark.parametrize(
    ("moment", "timezone", "hours"),
    [
        ("2026-01-05T12:00:00+00:00", "UTC", 12),
        ("2026-03-29T00:00:00+00:00", "Europe/Lisbon", 23),  # the clocks go forward
        ("2026-10-24T23:00:00+00:00", "Europe/Lisbon", 25),  # and back
        ("2026-03-08T05:00:00+00:00", "America/Havana", 23),  # there, midnight itself is left out
    ],
)
def test_the_time_until_the_next_day_knows_when_the_clocks_change(moment: str, timezone: str, hours: int) -> None:
    assert seconds_left(datetime.fromisoformat(moment), timezone) == hours * 3600


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - bounds are naive
    st.sampled_from(["", "UTC", "Europe/Lisbon", "America/Havana", "Africa/Cairo", "Pacific/Chatham", "Asia/Beirut"]),
)
@example(datetime(2026, 4, 24, 21, 59, 59, 999999, UTC), "Africa/Cairo")
def test_when_the_time_is_over_it_is_the_next_day_and_not_before(moment: datetime, timezone: str) -> None:
    left = seconds_left(moment, timezone)
    today = day_of(moment, timezone)
    assert day_of(moment + timedelta(seconds=left), timezone) > today
    assert left == 1 or day_of(moment + timedelta(seconds=left - 0.001), timezone) == today
