"""The schedules of a SOUL, as rows of work: each has one waiting row, for its next time; and when it is due.

A schedule keeps its local time when the clocks change. A time that is skipped in spring moves by as much as the clocks
were set forward; of a time that occurs twice in autumn, the first counts.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from common.clock import Clock, from_local, iso, local, parse_iso, parse_iso_or_none, spoken
from common.provenance import Importance
from common.text.untrusted import one_line
from modules.services.work.table import WorkTable, waiting
from modules.services.work.types import NewWork, Perceiver, WorkItem

Repeat: TypeAlias = Literal["once", "daily", "weekly"]
DAYS: Mapping[Repeat, int] = {"daily": 1, "weekly": 7}
"""The days between two occurrences."""
WEEK = timedelta(days=7)
MOST = 20
"""The most schedules at a time."""
WHAT_CHARS = 500
_SHOWN = 3
_NEAR = 0.25
"""In this last share of the interval, a missed time is not made up for: the next one is near."""

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


KIND = "schedule"
_NUMBERS_READ = 1_000
_LONGEST_PUT_OFF = timedelta(days=1)
"""A due schedule is never put off for as long, unless the clock was ahead when it was put off."""

Problem = Literal["Schedules Full", "Schedule Past"]
"""The reasons why nothing was scheduled: subsections of `Answers` in the skill `own-tools`."""


def schedules_in(connection: sqlite3.Connection) -> list[Schedule]:
    """Return all schedules, the next due first, as a step of a caller's transaction."""
    return sorted((schedule_of(item) for item in waiting(connection, KIND)), key=lambda one: one.due)


def schedule_of(item: WorkItem) -> Schedule:
    """Return the schedule of a row."""
    kept, last = item.payload, item.payload.get("last")
    return Schedule(
        number=_number_of(item),
        what=str(kept["what"]),
        at=datetime.fromisoformat(kept["at"]),
        repeat=kept.get("repeat") or ("weekly" if kept.get("weekly") else "once"),
        is_reminder=bool(kept["reminder"]),
        by="owner" if kept["by"] == "owner" else "soul",
        due=parse_iso(kept["due"]),
        last=parse_iso(last) if last else None,
        note=str(kept.get("note", "")),
    )


@dataclass(frozen=True, slots=True)
class Schedules(Perceiver):
    """Adds, lists and removes schedules. `timezone` is the SOUL's; "" for the machine's."""

    table: WorkTable
    clock: Clock
    timezone: str = ""

    async def all(self) -> list[Schedule]:
        """Return all schedules, the next due first."""
        return await self.table.database.run(schedules_in)

    async def add(
        self, what: str, at: datetime, *, repeat: Repeat, is_reminder: bool, by: By, note: str = "", changes: int = 0
    ) -> Schedule | Problem:
        """Schedule `what` for the local date and time `at`, and then as `repeat` says.

        A schedule with the number `changes` is replaced in one step and keeps its number.

        Raises:
            OverflowError: `at` is at the end of the calendar.

        """
        now = self.clock.now()
        older = next((one for one in await self._waiting() if _number_of(one) == changes), None)
        last = schedule_of(older).last if older else None
        due = next_due(at, now, last, self.timezone, repeat)
        if due <= now:
            return "Schedule Past"
        words, beside = one_line(what, WHAT_CHARS), one_line(note, WHAT_CHARS)
        made = Schedule(changes, words, at, repeat, is_reminder, by, due, last, beside)
        if older:
            await self.table.retry(older, _kept(made), due, is_later=True)
            return made
        if len(await self.all()) >= MOST:
            return "Schedules Full"
        known = await self.table.newest(KIND, _NUMBERS_READ)
        made = replace(made, number=max((_number_of(one) for one in known), default=0) + 1)
        while not await self.table.add(self._row(made, 1)):
            made = replace(made, number=made.number + 1)
        return made

    async def remove(self, number: int) -> Schedule | None:
        """Remove a schedule; return it as it was, or None if there is none with this number."""
        item = next((one for one in await self._waiting() if _number_of(one) == number), None)
        if item is None:
            return None
        await self.table.settle(item, "dropped", "removed")
        return schedule_of(item)

    async def go_on(self, item: WorkItem) -> None:
        """Add the row for the next time of a repeating schedule before its row is settled; can be repeated."""
        schedule, now = schedule_of(item), self.clock.now()
        known = await self.table.get(KIND, item.key)
        is_as_it_was = known is not None and (known.state, known.version) == ("pending", item.version)
        if schedule.repeat == "once" or not is_as_it_was:  # it was removed or changed meanwhile
            return
        due = next_due(schedule.at, now, schedule.due, self.timezone, schedule.repeat)
        count = int(item.key.partition("/")[2]) + 1
        await self.table.add(self._row(replace(schedule, due=due, last=schedule.due), count))

    async def perceive(self) -> None:
        """Update schedules after changes of the clock or the time zone, and skip a missed time if the next is near."""
        now = self.clock.now()
        for item in await self._waiting():
            one, waits_until = schedule_of(item), parse_iso_or_none(item.not_before) or now
            due = next_due(one.at, now, one.last, self.timezone, one.repeat)
            is_changed = one.due > now and (waits_until != due or parse_iso(item.created_at) > now)
            next_is_near = one.due <= now < due <= now + timedelta(days=DAYS.get(one.repeat, 0)) * _NEAR
            if is_changed or next_is_near:
                await self.table.retry(item, _kept(replace(one, due=due)), due)
            elif one.due <= now and waits_until - now > _LONGEST_PUT_OFF:
                await self.table.retry(item, item.payload)

    async def _waiting(self) -> list[WorkItem]:
        return await self.table.database.run(lambda connection: waiting(connection, KIND))

    def _row(self, one: Schedule, count: int) -> NewWork:
        """Return the row for occurrence number `count` of a schedule.

        Old rows are deleted in time and their numbers used again; a cause is never used again.
        """
        key = f"{one.number}/{count}"
        importance: Importance = "owner" if one.by == "owner" else "own"
        cause = f"{KIND}:{key}@{iso(self.clock.now())}"
        return NewWork(KIND, key, _kept(one), importance=importance, not_before=one.due, cause_id=cause)


def _kept(one: Schedule) -> dict[str, Any]:
    return {
        "what": one.what,
        "at": one.at.isoformat(timespec="minutes"),
        "repeat": one.repeat,
        "reminder": one.is_reminder,
        "by": one.by,
        "due": iso(one.due),
        "last": iso(one.last) if one.last else "",
        "note": one.note,
    }


def _number_of(item: WorkItem) -> int:
    return int(item.key.partition("/")[0])
