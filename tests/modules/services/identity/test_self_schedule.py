"""The days and the time of a ritual are read as meant, and hold on the days on which the clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from modules.services.identity.self_mechanics import RitualSchedule, parse_ritual_schedule, read_rituals

ALL = frozenset(range(7))
WEEKDAYS, WEEKENDS = frozenset(range(5)), frozenset({5, 6})
NINE = time(9)


@pytest.mark.parametrize(
    ("schedule", "days", "at"),
    [
        ("every day at 9am", ALL, NINE),
        (" Weekdays 09:00 ", WEEKDAYS, NINE),
        ("weekdays, 9:30 a.m.", WEEKDAYS, time(9, 30)),
        ("monday,wednesday,friday", {0, 2, 4}, None),
        ("Mon, Wed and Fri @ 12 pm", {0, 2, 4}, time(12)),
        ("mon–fri 17h30", WEEKDAYS, time(17, 30)),  # noqa: RUF001 - a dash as written
        ("saturday to monday", {5, 6, 0}, None),
        ("*daily* 07.15", ALL, time(7, 15)),
    ],
)
def test_days_and_time_are_read(schedule: str, days: frozenset[int], at: time | None) -> None:
    assert parse_ritual_schedule(schedule) == RitualSchedule(frozenset(days), at)


@pytest.mark.parametrize(
    "schedule",
    [
        *("", "sometimes", "daily at dawn", "weekdays 25:00", "daily 9", "09:00", "daily 9:00 and 17:00", "mon-soon"),
        *("daily 23:30", "daily 13pm"),
    ],
)
def test_what_is_not_understood_never_opens_and_is_told(schedule: str) -> None:
    assert parse_ritual_schedule(schedule) is None
    if schedule:
        _, told = read_rituals(f"- **Paper** [{schedule}] (www-paper)")
        assert [schedule in one for one in told] == [True]


def test_it_opens_from_its_time_on_and_never_at_night() -> None:
    morning, anytime = RitualSchedule(ALL, NINE), RitualSchedule(ALL)
    day = datetime(2026, 11, 27)  # noqa: DTZ001 - the local clock
    assert [hour for hour in range(24) if morning.is_open(day.replace(hour=hour))] == list(range(9, 23))
    assert [hour for hour in range(24) if anytime.is_open(day.replace(hour=hour))] == list(range(7, 23))
    early = RitualSchedule(WEEKDAYS, time(5))
    assert early.opens_at(day.date()).time() == time(7)
    assert early.next_date(date(2026, 11, 27)) == date(2026, 11, 30)


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("month", [3, 10])
def test_every_date_opens_at_the_same_time_of_day_also_when_the_clocks_change(zone: str, month: int) -> None:
    schedule, tz = RitualSchedule(ALL, time(7, 30)), ZoneInfo(zone)
    opened: dict[date, time] = {}
    moment = datetime(2026, month, 1, tzinfo=UTC)
    for _ in range(40 * 24 * 2):
        here = moment.astimezone(tz)
        if schedule.is_open(here):
            opened.setdefault(here.date(), here.time())
        moment += timedelta(minutes=30)
    days = sorted(opened)
    assert days == [days[0] + timedelta(days=ahead) for ahead in range(len(days))]
    assert len(days) >= 40
    assert {opened[day] for day in days[1:]} == {time(7, 30)}
