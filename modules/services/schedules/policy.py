"""Computes when a schedule is due. Pure.

A schedule keeps its local time when the clocks change. A time that is skipped in spring moves by as much as the clocks
were set forward; of a time that occurs twice in autumn, the first counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from common.clock import from_local, local, spoken

Repeat: TypeAlias = Literal["once", "daily", "weekly"]
DAYS: Mapping[Repeat, int] = {"daily": 1, "weekly": 7}
"""The days between two occurrences."""
WEEK = timedelta(days=7)
MOST = 20
"""The most schedules at a time."""
WHAT_CHARS = 500
_SHOWN = 3

By: TypeAlias = Literal["owner", "soul"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule.

    Attributes:
        number: its key. Its name is `name`, as bare numbers name acts that wait.
        what: the task, or the words to remind the owner of.
        at: the local date and time of the first time, without a zone.
        repeat: whether it recurs each day, or each week on that weekday; otherwise it comes once.
        is_reminder: whether it only reminds the owner.
        by: who asked for it.
        due: the next time, in UTC.
        last: the scheduled time of the last occurrence, in UTC; None if there was none.
        note: what the SOUL wrote beside the words of a reminder. It may repeat others' words, and only the owner reads
            it, with the reminder.

    """

    number: int
    what: str
    at: datetime
    repeat: Repeat
    is_reminder: bool
    by: By
    due: datetime
    last: datetime | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Its name for the owner, the model and a judge, such as `S2`."""
        return f"S{self.number}"

    def told_due(self, timezone: str) -> str:
        """Return the next time in words."""
        again = {"once": "", "daily": ", each day", "weekly": ", each week"}[self.repeat]
        return spoken(local(self.due, timezone)) + again

    @property
    def noted(self) -> str:
        """The note in words for the owner; "" for none."""
        return f"noted then, perhaps from what others wrote: {self.note}" if self.note else ""

    def told(self, timezone: str) -> str:
        """Return a line that a model may read too, without the note."""
        what = f"remind you: {self.what}" if self.is_reminder else self.what
        return f"{self.name}  {self.told_due(timezone)}: {what}" + (" (its own idea)" if self.by == "soul" else "")

    def told_owner(self, timezone: str) -> str:
        """Return a line that only the owner reads."""
        return self.told(timezone) + (f" ({self.noted})" if self.note else "")


def first_scheduled(schedules: Sequence[Schedule], timezone: str) -> tuple[str, ...]:
    """Return the first schedules as lines, and a line with the number of the others."""
    more = len(schedules) - _SHOWN
    return (*(one.told(timezone) for one in schedules[:_SHOWN]), *([f"and {more} more"] if more > 0 else ()))


def schedule_number(given: str) -> int:
    """Return the number in the name of a schedule, with or without the letter; 0 if there is none."""
    digits = given.strip().upper().removeprefix("S")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def next_due(at: datetime, now: datetime, last: datetime | None, timezone: str, repeat: Repeat) -> datetime:
    """Return the next UTC time of a schedule: after `now`, and after the time of its last occurrence.

    Missed times are not made up for. A `last` further ahead than the next time comes from a wrong clock and is ignored.
    """
    if repeat == "once":
        return from_local(at, timezone)
    step = DAYS[repeat]
    after = last if last and timedelta(0) < last - now <= timedelta(days=step) else now
    day = max(at, local(after, timezone).replace(tzinfo=None) - WEEK).date()
    day += timedelta(days=(at.date() - day).days % step)
    while True:
        moment = from_local(datetime.combine(day, at.time()), timezone)
        if moment > after:
            return moment
        day += timedelta(days=step)
