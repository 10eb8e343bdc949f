"""The numbers make sense together, and a faster life keeps their proportions."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock, ScaledClock
from common.intervals import Pace


@given(st.floats(min_value=0.01, max_value=1000))
def test_a_faster_life_keeps_every_proportion(speed: float) -> None:
    normal, fast = Pace(), Pace().at(ScaledClock(FakeClock(), speed))
    for field in fields(Pace):
        assert getattr(fast, field.name) * speed == pytest.approx(getattr(normal, field.name))


def test_production_is_the_plain_pace() -> None:
    assert Pace().at(FakeClock()) == Pace()
