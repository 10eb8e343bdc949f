"""When a schedule is due. Pure.

A schedule keeps its local time when the clocks change. A time that is skipped in spring comes as much later as the
clocks were set forward; one that comes twice in autumn counts the first time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from common.clock import from_local, local, spoken

Repeat: TypeAlias = Literal["once", "daily", "weekly"]
DAYS: Mapping[Repeat, int] = {"daily": 1, "weekly": 7}
"""How many days lie between two times."""
WEEK = timedelta(days=7)
MOST = 20
"""How many schedules there may be."""
WHAT_CHARS = 500
_SHOWN = 3

By: TypeAlias = Literal["owner", "soul"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule.

    Attributes:
        number: by which it is kept; `name` names it, as numbers alone are those of acts that wait.
        what: what to do, or the words to remind the owner of.
        at: the local date and time of the first time, without a zone.
        repeat: whether it comes again each day, or each week on that day of the week; else it comes once.
        is_reminder: whether it only tells the owner its words.
        by: at whose word it was made.
        due: when it comes next, in UTC.
        last: the moment for which it came last, in UTC; None if it never did.
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
        """Return how it is named for the owner, the model and a judge, as `S2`."""
        return f"S{self.number}"

    def told_due(self, timezone: str) -> str:
        """Return when it comes next, as people say it."""
        again = {"once": "", "daily": ", each day", "weekly": ", each week"}[self.repeat]
        return spoken(local(self.due, timezone)) + again

    @property
    def noted(self) -> str:
        """Return the note in words for the owner; "" for none."""
        return f"noted then, perhaps from what others wrote: {self.note}" if self.note else ""

    def told(self, timezone: str) -> str:
        """Return it as a line that a model may read, too: without the note."""
        what = f"remind you: {self.what}" if self.is_reminder else self.what
        return f"{self.name}  {self.told_due(timezone)}: {what}" + (" (its own idea)" if self.by == "soul" else "")

    def told_owner(self, timezone: str) -> str:
        """Return it as a line that only the owner reads."""
        return self.told(timezone) + (f" ({self.noted})" if self.note else "")


def first_scheduled(schedules: Sequence[Schedule], timezone: str) -> tuple[str, ...]:
    """Return the first of these as lines, and how many more there are."""
    more = len(schedules) - _SHOWN
    return (*(one.told(timezone) for one in schedules[:_SHOWN]), *([f"and {more} more"] if more > 0 else ()))


def schedule_number(given: str) -> int:
    """Return the number in the name of a schedule, which may stand alone where nothing else is meant; 0 for none."""
    digits = given.strip().upper().removeprefix("S")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def next_due(at: datetime, now: datetime, last: datetime | None, timezone: str, repeat: Repeat) -> datetime:
    """Return the UTC moment at which a schedule comes next: after `now`, and after the moment for which it came last.

    Times that were missed are not made up for. A `last` further ahead than the next time was kept by a clock that was
    wrong, and is disregarded.
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
