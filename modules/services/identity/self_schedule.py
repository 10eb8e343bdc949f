"""The days, and the time of day, of a ritual in SELF.md: `weekdays`, `Mon, Wed and Fri`, `mon-fri at 9:30 am`. Pure.

Everything is local wall-clock time: a time of day stays the same when the clocks change, and a local date comes once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from common.text.strings import straighten
from modules.runtime.scheduler.policy import QUIET_HOURS_END, QUIET_HOURS_START

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ALL, _WEEKDAYS, _WEEKENDS = frozenset(range(7)), frozenset(range(5)), frozenset({5, 6})
_GROUPS = {
    **dict.fromkeys(("daily", "everyday", "day", "days"), _ALL),
    **dict.fromkeys(("weekday", "weekdays", "workdays"), _WEEKDAYS),
    **dict.fromkeys(("weekend", "weekends"), _WEEKENDS),
}
_SHORT = {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
_FILLERS = frozenset({"and", "on", "every", "each", "at"})
_TIME = re.compile(r"(?<![\d:.])(\d{1,2})(?:[:.h](\d{2})(?!\d))?\s?(?:([ap])\.?m\b\.?|h\b)?(?![\w:])")
_RANGE = re.compile(r"([a-z]{1,12})\s?(?:-|–|—|\bto\b|\bthrough\b)\s?([a-z]{1,12})")  # noqa: RUF001 - dashes as written
_SIGNS = re.compile(r"[\s,;/&+@.|*_`()]+")
_MORNING = time(QUIET_HOURS_END)
_NOON_HOURS, _HOURS, _MINUTES = 12, 24, 60
_WEEK = 7


@dataclass(frozen=True, slots=True)
class RitualSchedule:
    """On which days of the week (0 is Monday), and from which time of day on; `at` is None for any time by day."""

    days: frozenset[int]
    at: time | None = None

    def is_on(self, day: date) -> bool:
        """Whether it falls on a date."""
        return day.weekday() in self.days

    def opens_at(self, day: date) -> datetime:
        """Return when it opens on a date, in wall-clock time: never before the quiet hours of the night are over."""
        return datetime.combine(day, max(self.at or _MORNING, _MORNING))

    def is_open(self, wall_clock: datetime) -> bool:
        """Whether it may open at a moment of the local day; what was missed by day is made up for until the night."""
        now = wall_clock.replace(tzinfo=None)
        return self.is_on(now.date()) and self.opens_at(now.date()) <= now and not self.is_over(now)

    @staticmethod
    def is_over(wall_clock: datetime) -> bool:
        """Whether the night has begun, so that nothing opens any more on the local day of a moment."""
        return wall_clock.hour >= QUIET_HOURS_START

    def next_date(self, after: date) -> date:
        """Return the first of its dates after a date."""
        days = (after + timedelta(days=ahead) for ahead in range(1, _WEEK + 1))
        return next(day for day in days if self.is_on(day))


def parse_ritual_schedule(schedule: str) -> RitualSchedule | None:
    """Return what a schedule says; None where a word of it is not understood, or its time lies in the night."""
    text = straighten(schedule).lower()
    times = list(_TIME.finditer(text))
    if len(times) > 1:
        return None
    at = _time_of(times[0]) if times else None
    if times and (at is None or at >= time(QUIET_HOURS_START)):
        return None
    days = set[int]()
    for found in _days_in(_TIME.sub(" ", text)):
        if found is None:
            return None
        days |= found
    return RitualSchedule(frozenset(days), at) if days else None


def _time_of(found: re.Match[str]) -> time | None:
    """Return a time of day; a bare number is none, for it may count anything."""
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3]:
        if not 1 <= hour <= _NOON_HOURS:
            return None
        hour = hour % _NOON_HOURS + (_NOON_HOURS if found[3] == "p" else 0)
    elif found[2] is None and not found[0].strip().endswith("h"):
        return None
    return time(hour, minute) if hour < _HOURS and minute < _MINUTES else None


def _days_in(text: str) -> Iterator[frozenset[int] | None]:
    """Each group of days that a text names; None for a word that names none."""
    for first, last in _RANGE.findall(text):
        begin, end = _day_of(first), _day_of(last)
        if begin is None or end is None:
            yield None
            return
        yield frozenset((begin + ahead) % _WEEK for ahead in range((end - begin) % _WEEK + 1))
    for word in filter(None, _SIGNS.split(_RANGE.sub(" ", text))):
        if word in _FILLERS:
            continue
        day = _day_of(word)
        yield _GROUPS.get(word) if day is None else frozenset({day})


def _day_of(word: str) -> int | None:
    """Return the day that a word names: `mon`, `monday` or `mondays`."""
    names = (number for number, name in enumerate(_DAYS) if word in {name[:3], name, f"{name}s"})
    return next(names, _SHORT.get(word))
