"""Tests of record keys: they are valid, repeatable, and sorted by time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.writes import TidSource, is_tid, tid_for

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - naive


@given(MOMENTS, st.text())
def test_any_intent_gets_a_valid_key_and_always_the_same(moment: datetime, intent_id: str) -> None:
    key = tid_for(moment, intent_id)
    assert is_tid(key)
    assert key == tid_for(moment, intent_id)


@given(MOMENTS, MOMENTS, st.text(), st.text())
def test_keys_sort_by_time(one: datetime, other: datetime, first_id: str, second_id: str) -> None:
    if one != other:
        assert (one < other) == (tid_for(one, first_id) < tid_for(other, second_id))


def test_the_key_says_its_microsecond() -> None:
    moment = datetime(2023, 7, 17, 3, 45, 46, 123456, tzinfo=UTC)
    number = 0
    for char in tid_for(moment, "intent"):
        number = number * 32 + "234567abcdefghijklmnopqrstuvwxyz".index(char)
    assert number >> 10 == 1_689_565_546_123_456


def test_two_intents_of_the_same_microsecond_get_different_keys() -> None:
    moment = datetime(2026, 1, 5, tzinfo=UTC)
    assert tid_for(moment, "one") != tid_for(moment, "two")


@pytest.mark.parametrize(
    "text",
    [
        *("", "3jzfcijpj2z2", "3jzfcijpj2z2aa", "3jzfcijpj2z2A", "zzzzzzzzzzzzz", "3jzfcijpj2z21", "kjzfcijpj2z2a"),
        *("3jzfcijpj2z2a\n",),
    ],
)
def test_what_is_no_key_is_refused(text: str) -> None:
    assert not is_tid(text)


def test_a_moment_before_1970_has_no_key() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        tid_for(datetime(1969, 12, 31, tzinfo=UTC), "intent")


def test_fresh_keys_rise_even_when_the_clock_stands_or_falls_back() -> None:
    source, now = TidSource(), datetime(2026, 1, 5, tzinfo=UTC)
    keys = [source.next(now), source.next(now), source.next(now - timedelta(days=1)), source.next(now + timedelta(1))]
    assert keys == sorted(set(keys))
