"""Proves that time can be passed in: the fake clock behaves like the real one, only faster.

Proves that the numbers of the paces fit together, and that a faster life keeps their proportions.
"""

import asyncio
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import (
    FakeClock,
    ScaledClock,
    SystemClock,
    iso,
    local,
    parse_iso,
    parse_iso_or_none,
    parse_local_or_none,
    spoken,
)
from common.intervals import Pace


@pytest.mark.parametrize(("passes_s", "ends"), [(4.9, False), (5.1, True)])
async def test_a_deadline_passes_with_the_fake_clock(passes_s: float, ends: bool) -> None:  # noqa: FBT001
    clock = FakeClock()

    async def waiting() -> None:
        async with clock.timeout(5):
            await asyncio.Event().wait()

    task = asyncio.create_task(waiting())
    await clock.advance(passes_s)
    assert task.done() is ends
    await clock.advance(1)
    with pytest.raises(TimeoutError):
        await task


async def test_a_body_that_ends_in_time_is_not_disturbed_by_its_deadline() -> None:
    clock = FakeClock()
    async with clock.timeout(5):
        await clock.sleep(0)
    await clock.advance(10)
    with pytest.raises(TimeoutError):
        async with SystemClock().timeout(0.001):
            await asyncio.Event().wait()


async def test_a_faster_life_goes_by_the_time_of_the_world_and_reckons_its_own() -> None:
    world = FakeClock()
    life, began = ScaledClock(world, 10), world.now()
    sleeper = asyncio.create_task(life.sleep(life.real(3600)))
    await world.advance(360)
    assert sleeper.done()
    assert (life.now(), life.monotonic()) == (world.now(), world.monotonic())
    assert (life.since(began), world.since(began)) == (timedelta(hours=1), timedelta(seconds=360))
    assert life.lived(life.real(timedelta(days=1))) == timedelta(days=1)
    assert (life.keeps_hours, ScaledClock(world, 1).keeps_hours, world.keeps_hours) == (False, True, True)
    with pytest.raises(TimeoutError):
        async with life.timeout(5):
            await world.advance(5.1)


async def test_a_moment_ahead_counts_as_the_one_when_it_was_first_asked_about() -> None:
    world = FakeClock()
    life, wrong = ScaledClock(world, 10), world.now() + timedelta(days=365)
    assert (world.since(wrong), life.since(wrong)) == (timedelta(0), timedelta(0))
    await world.advance(3600)
    assert (world.since(wrong), life.since(wrong)) == (timedelta(hours=1), timedelta(hours=10))
    world.jump(366 * 86400)
    assert world.since(wrong) == timedelta(days=1, hours=1)


@pytest.mark.parametrize("speed", [0, -1])
def test_time_neither_stops_nor_runs_backwards(speed: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ScaledClock(FakeClock(), speed)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 5, 12, tzinfo=UTC), "2026-01-05T12:00:00.000Z"),
        (datetime(2026, 1, 5, 12, tzinfo=timezone(timedelta(hours=2))), "2026-01-05T10:00:00.000Z"),
        (datetime(2026, 1, 5, 12, 0, 0, 123_456, tzinfo=UTC), "2026-01-05T12:00:00.123Z"),
    ],
)
def test_times_are_written_in_utc_with_milliseconds(moment: datetime, text: str) -> None:
    assert iso(moment) == text


@pytest.mark.parametrize(
    "text", ["2026-01-05T12:00:00Z", " 2026-01-05T12:00:00.000Z ", "2026-01-05T14:00:00+02:00", "2026-01-05T12:00:00"]
)
def test_times_are_read_with_any_offset_and_naive_ones_as_utc(text: str) -> None:
    assert parse_iso(text) == parse_iso_or_none(text) == datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="soon"):
        parse_iso("soon")


@pytest.mark.parametrize("value", ["soon", "", "2026-13-05T12:00:00Z", None, 20260105, ["2026-01-05T12:00:00Z"]])
def test_what_came_from_outside_and_is_no_time_is_none(value: object) -> None:
    assert parse_iso_or_none(value) is None


def test_a_day_or_time_without_an_offset_is_in_the_given_time_zone() -> None:
    begins = datetime(2026, 1, 4, 15, tzinfo=UTC)
    for text in ("2026-01-05", " 2026-01-05T00:00", "2026-01-04T15:00Z"):
        assert parse_local_or_none(text, "Asia/Tokyo") == begins
    for text in ("", "soon", "0001-01-01"):
        assert parse_local_or_none(text, "Asia/Tokyo") is None


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - made aware below
def test_reading_what_was_written_gives_the_same_millisecond(naive: datetime) -> None:
    moment = naive.replace(microsecond=naive.microsecond // 1000 * 1000, tzinfo=UTC)
    assert parse_iso(iso(moment)) == moment


def test_the_owners_day_can_be_in_any_time_zone() -> None:
    moment = datetime(2026, 7, 5, 23, 30, tzinfo=UTC)
    assert local(moment, "Europe/Madrid").day == 6
    assert local(moment) == moment


def test_a_moment_is_told_as_people_tell_it() -> None:
    assert spoken(datetime(2026, 1, 5, 12, 4, tzinfo=UTC)) == "Monday 5 January 2026, 12:04"


@given(st.floats(min_value=0.01, max_value=1000))
def test_a_faster_life_keeps_every_proportion(speed: float) -> None:
    normal, fast = Pace(), Pace().at(ScaledClock(FakeClock(), speed))
    for field in fields(Pace):
        assert getattr(fast, field.name) * speed == pytest.approx(getattr(normal, field.name))


def test_production_is_the_plain_pace() -> None:
    assert Pace().at(FakeClock()) == Pace()
