"""Each time of a schedule comes once: when the clocks change, after a sleep, and however the clock is set."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import iso, local
from modules.runtime.control import Standing
from modules.runtime.scheduler.scheduler import Attention
from modules.services.schedules import KIND, MOST, Repeat, Schedule, Schedules, first_scheduled, schedule_of
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, WorkItem
from tests.modules.services.outbox.running_outbox import RunningOutbox, open_running_outbox

HOUR_S, DAY_S = 3_600.0, 86_400.0
ZONE = "Europe/Lisbon"


@dataclass(kw_only=True)
class Noting(Handler):
    """Records what is due and when it came, or puts it off."""

    kind = KIND
    schedules: Schedules
    came: list[tuple[str, str]] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)
    puts_off: bool = False

    async def handle(self, item: WorkItem) -> Disposition:
        if self.puts_off:
            return Disposition("later", "busy", "something else is going on", HOUR_S)
        self.moments.append(self.schedules.clock.now())
        now = local(self.moments[-1], ZONE)
        self.came.append((schedule_of(item).what, f"{now:%Y-%m-%d %H:%M}"))
        return Disposition("done", "done")

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        await self.schedules.go_on(item)


@dataclass
class Rig:
    """Schedules in a real database, with a loop that is run step by step."""

    outbox: RunningOutbox
    zone: str = ZONE
    handler: Noting = field(init=False)

    def __post_init__(self) -> None:
        self.handler = Noting(schedules=self.schedules)

    @property
    def schedules(self) -> Schedules:
        return Schedules(WorkTable(self.outbox.database, self.outbox.clock), self.outbox.clock, self.zone)

    @property
    def came(self) -> list[str]:
        return [at for _, at in self.handler.came]

    async def add(self, at: str, what: str = "look", *, repeat: Repeat = "weekly") -> Schedule:
        added = await self.schedules.add(what, datetime.fromisoformat(at), repeat=repeat, is_reminder=False, by="owner")
        assert isinstance(added, Schedule)
        return added

    async def look(self) -> None:
        loop = WorkLoop(
            table=self.schedules.table,
            handlers=(self.handler,),
            perceivers=(self.schedules,),
            accepted=self.outbox.outbox.accepted,
            journal=self.outbox.journal,
            attention=Attention(),
            clock=self.outbox.clock,
            standing=Standing,
        )
        await loop.run()

    async def live(self, days: float) -> None:
        """Let `days` pass, and run the loop at each moment at which something is due, and at the end."""
        clock = self.outbox.clock
        end = clock.now() + timedelta(days=days)
        await self.look()
        while clock.now() < end:
            due = [one.due for one in await self.schedules.all() if one.due > clock.now()]
            clock.jump((min([*due, end]) - clock.now()).total_seconds())
            await self.look()

    def set_clock(self, moment: str) -> None:
        clock = self.outbox.clock
        wanted = datetime.fromisoformat(moment).replace(tzinfo=UTC)
        clock.jump((wanted - clock.now()).total_seconds())


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_running_outbox(tmp_path) as outbox:
        yield Rig(outbox)


async def test_a_time_that_is_skipped_or_comes_twice_comes_once_and_the_others_keep_their_hour(rig: Rig) -> None:
    rig.set_clock("2026-03-21T12:00")
    await rig.add("2026-03-22T01:30")  # skipped on 29 March
    await rig.live(15.5)
    assert rig.came == ["2026-03-22 01:30", "2026-03-29 02:30", "2026-04-05 01:30"]
    rig.set_clock("2026-10-18T12:00")
    await rig.look()
    rig.handler.came.clear()
    await rig.live(14.5)  # twice on 25 October
    assert rig.came == ["2026-10-25 01:30", "2026-11-01 01:30"]
    assert iso(rig.handler.moments[-2]) == "2026-10-25T00:30:00.000Z", "the first of the two"
    assert {iso(one.due) for one in await rig.schedules.all()} == {"2026-11-08T01:30:00.000Z"}


async def test_of_many_schedules_the_first_are_told_and_how_many_more_there_are(rig: Rig) -> None:
    for day in range(1, 6):
        await rig.add(f"2036-01-0{day}T09:00")
        told = first_scheduled(await rig.schedules.all(), ZONE)
        assert (len(told), told[-1] == f"and {day - 3} more") == ((4, True) if day > 3 else (day, False))


async def test_each_day_keeps_its_hour_over_both_changes_of_the_clocks_and_comes_once(rig: Rig) -> None:
    rig.set_clock("2026-03-27T12:00")
    await rig.add("2026-03-28T01:30", repeat="daily")  # skipped on 29 March
    await rig.live(4)
    assert rig.came == ["2026-03-28 01:30", "2026-03-29 02:30", "2026-03-30 01:30", "2026-03-31 01:30"]
    (item,) = await rig.schedules.all()
    assert item.told_due(ZONE).endswith(", each day")
    rig.set_clock("2026-10-24T00:00")
    await rig.look()
    rig.handler.came.clear()
    await rig.live(3)  # twice on 25 October
    assert rig.came == ["2026-10-24 01:30", "2026-10-25 01:30", "2026-10-26 01:30"]


def test_a_weekly_row_of_an_earlier_version_stays_weekly() -> None:
    kept = {"what": "look", "at": "2026-06-01T09:00", "reminder": False, "by": "owner", "due": "2026-06-08T08:00:00Z"}
    for weekly, repeat in ((True, "weekly"), (False, "once")):
        row = WorkItem(
            1, KIND, "1/1", {**kept, "weekly": weekly}, "", "owner", "", 0, "pending", "", "schedule:1/1", "", ""
        )
        assert schedule_of(row).repeat == repeat


async def test_what_came_due_while_the_machine_slept_comes_once_when_it_wakes(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:00")
    await rig.add("2026-06-01T09:00", "weekly")
    await rig.add("2026-06-01T10:00", "once", repeat="once")
    await rig.look()
    rig.outbox.clock.jump(9 * HOUR_S)
    await rig.look()
    await rig.outbox.restart()
    rig.handler.schedules = rig.schedules
    await rig.live(8)
    assert sorted(rig.handler.came) == [
        ("once", "2026-06-01 16:00"),
        ("weekly", "2026-06-01 16:00"),
        ("weekly", "2026-06-08 09:00"),
    ]
    rig.outbox.clock.jump(30 * DAY_S)
    await rig.live(1)
    assert len(rig.came) == 4
    assert [iso(one.due) for one in await rig.schedules.all()] == ["2026-07-13T08:00:00.000Z"]


async def test_no_missed_time_is_made_up_for_shortly_before_the_next_one(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:00")
    await rig.add("2026-06-01T10:00", "pill", repeat="daily")
    await rig.look()
    rig.set_clock("2026-06-05T07:55")
    await rig.live(0.1)
    assert rig.came == ["2026-06-05 10:00"]
    rig.set_clock("2026-06-07T12:00")
    await rig.live(0)
    assert rig.came[1:] == ["2026-06-07 13:00"]


@pytest.mark.parametrize("hours", [0.5, 2])
@pytest.mark.parametrize("by", [-400 * DAY_S, -2 * HOUR_S, 2 * HOUR_S, 400 * DAY_S])
async def test_each_time_comes_once_although_the_clock_was_wrong_for_a_while(rig: Rig, by: float, hours: float) -> None:
    rig.set_clock("2026-06-01T06:30")  # a Monday, 07:30 in Lisbon
    await rig.add("2026-06-01T09:00", "weekly")
    await rig.add("2026-06-01T09:00", "once", repeat="once")
    await rig.look()
    rig.outbox.clock.jump(by)
    await rig.live(hours / 24)
    rig.outbox.clock.jump(-by)
    await rig.live(14.5)
    assert [what for what, _ in rig.handler.came].count("once") == 1
    weekly = [at for what, at in rig.handler.came if what == "weekly"]
    assert len(weekly) == 3  # 1, 8 and 15 June, the first of them early if the clock was ahead
    assert weekly[1:] == ["2026-06-08 09:00", "2026-06-15 09:00"]
    assert [iso(one.due) for one in await rig.schedules.all()] == ["2026-06-22T08:00:00.000Z"]


async def test_no_time_is_lost_to_a_clock_that_was_far_ahead_for_a_week(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:30")
    await rig.add("2026-06-01T09:00")
    rig.outbox.clock.jump(400 * DAY_S)
    await rig.live(9)
    rig.outbox.clock.jump(-400 * DAY_S)
    rig.handler.came.clear()
    await rig.live(14)
    assert rig.came == ["2026-06-15 09:00", "2026-06-22 09:00"]


async def test_what_was_put_off_by_a_clock_that_was_ahead_comes_when_it_is_set_right(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:30")
    await rig.add("2026-06-01T09:00", repeat="once")
    rig.outbox.clock.jump(400 * DAY_S)
    rig.handler.puts_off = True
    await rig.look()
    rig.handler.puts_off = False
    rig.set_clock("2026-06-01T08:30")
    await rig.live(1)
    assert rig.came == ["2026-06-01 09:30"]


async def test_a_schedule_made_while_the_clock_was_ahead_is_not_due_at_once_when_it_is_set_right(rig: Rig) -> None:
    rig.set_clock("2027-06-01T06:30")
    await rig.add("2027-06-02T09:00", "once", repeat="once")
    rig.set_clock("2026-06-01T06:30")
    await rig.live(1)
    assert rig.came == []


async def test_a_removed_schedule_does_not_come_again_even_if_that_happens_while_it_is_due(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:30")
    first, second = await rig.add("2026-06-01T09:00"), await rig.add("2026-06-01T09:00")
    removed = await rig.schedules.remove(first.number)
    assert removed == first
    assert await rig.schedules.remove(first.number) is None
    due = await rig.schedules.table.newest(KIND, 1)
    await rig.schedules.remove(second.number)
    await rig.schedules.go_on(due[0])
    assert await rig.schedules.all() == []


async def test_there_are_twenty_at_most_and_none_in_the_past(rig: Rig) -> None:
    rig.set_clock("2026-06-01T06:30")
    for _ in range(MOST):
        await rig.add("2026-06-02T09:00")
    at = datetime.fromisoformat("2026-06-02T09:00")
    full = await rig.schedules.add("more", at, repeat="weekly", is_reminder=False, by="soul")
    past = await rig.schedules.add("late", at - timedelta(days=2), repeat="once", is_reminder=True, by="owner")
    assert (full, past) == ("Schedules Full", "Schedule Past")
