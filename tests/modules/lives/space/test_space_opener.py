"""A quiet room is opened by one of those present, and not too often."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.clock import FakeClock
from modules.lives.space.policy import elected_opener, should_open
from tests.exploration import examples

NOW = FakeClock().now()
ELECTED = elected_opener(("marvin", "rebecca"), NOW) or ""
OTHER = "rebecca" if ELECTED == "marvin" else "marvin"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("joined", "received", "opened", "opens"),
    [
        (60, None, None, True),
        (59, None, None, False),
        (None, None, None, False),
        (900, 599, None, False),
        (900, 600, None, True),
        (9000, 900, 3599, False),
        (9000, 900, 3600, True),
    ],
    ids=["a minute alone", "just come", "not in", "spoken lately", "long quiet", "opened lately", "long ago"],
)
def test_a_conversation_is_opened_after_a_silence_and_once_an_hour(
    joined: float | None,
    received: float | None,
    opened: float | None,
    opens: bool,  # noqa: FBT001 - a table
) -> None:
    decision = should_open(
        ELECTED,
        [OTHER],
        NOW,
        joined_at=None if joined is None else ago(joined),
        last_message_at=None if received is None else ago(received),
        opened_at=None if opened is None else ago(opened),
    )
    assert bool(decision) is opens, decision.reason


def test_nobody_talks_to_an_empty_room_and_only_the_elected_one_begins() -> None:
    assert not should_open(ELECTED, [], NOW, joined_at=ago(999), last_message_at=None, opened_at=None)
    assert not should_open(OTHER, [ELECTED], NOW, joined_at=ago(999), last_message_at=None, opened_at=None)


@settings(max_examples=examples(50))
@given(st.sets(st.text(min_size=1, max_size=8), min_size=2, max_size=6), st.integers(0, 10_000))
def test_exactly_one_of_those_present_is_elected_whoever_reckons(names: set[str], hours: int) -> None:
    now = NOW + timedelta(hours=hours)
    opening = [
        me
        for me in names
        if should_open(me, names - {me}, now, joined_at=now - timedelta(hours=1), last_message_at=None, opened_at=None)
    ]
    assert opening == [elected_opener(sorted(names), now)]


def test_every_hour_another_may_be_elected() -> None:
    hours = {elected_opener(("a", "b", "c", "d"), NOW + timedelta(hours=hour)) for hour in range(48)}
    assert len(hours) > 2
    assert elected_opener((), NOW) is None
