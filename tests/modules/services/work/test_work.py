"""Each work item is done once, in order, with a limit of tries, and told once; also across restarts and kills.

The turns of one account are limited in an hour and in a day, also across restarts.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.errors import BudgetExceeded, Transient
from common.person import Person, Trace
from modules.runtime.control import Standing
from modules.runtime.database.database import Database
from modules.runtime.database.people import know_person
from modules.runtime.journal.people import JOURNAL_OF_PEOPLE
from modules.runtime.journal.rows import Journal
from modules.runtime.scheduler.scheduler import Attention
from modules.services.work.limits import PersonTurns, limits_of
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WORK_OF_PEOPLE, WorkTable
from modules.services.work.types import PAUSE_S, STOPPED, Disposition, Handler, NewWork, Perceiver, WorkItem
from tests.modules.lives.bluesky.bluesky_values import START, actor
from tests.modules.services.outbox.running_outbox import RunningOutbox, open_running_outbox, post

ADA = "did:plc:ada"


class Killed(BaseException):
    """Stands for the end of the process."""


@dataclass
class Recording(Handler):
    """Records the work that it is given, and does what the test says."""

    then: Callable[[WorkItem], Awaitable[Disposition]]
    kind: str = "ritual"
    most_tries: int = 2
    seen: list[str] = field(default_factory=list)

    async def handle(self, item: WorkItem) -> Disposition:
        self.seen.append(item.key)
        return await self.then(item)


async def done(_: WorkItem) -> Disposition:
    return Disposition("done", "kept", "as agreed")


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as outbox:
        yield outbox


def table(running: RunningOutbox) -> WorkTable:
    return WorkTable(running.database, running.clock)


def loop(
    running: RunningOutbox,
    handler: Handler,
    standing: Callable[[], Standing] = Standing,
    perceivers: Sequence[Perceiver] = (),
) -> WorkLoop:
    return WorkLoop(
        table=table(running),
        handlers=(handler,),
        perceivers=perceivers,
        accepted=running.outbox.accepted,
        journal=running.journal,
        attention=Attention(),
        clock=running.clock,
        standing=standing,
    )


async def test_a_key_is_handled_once_however_often_it_is_added_and_told_once(running: RunningOutbox) -> None:
    handler = Recording(done)
    assert await table(running).add(NewWork("ritual", "circle/2026-01-05")) == 1
    for _ in range(2):
        await loop(running, handler).run()
        await running.restart()
        assert await table(running).add(NewWork("ritual", "circle/2026-01-05")) == 0
    assert handler.seen == ["circle/2026-01-05"]
    told = [one.entry for one in await running.journal.recent(9) if one.entry.loop == "work"]
    assert [(one.data["act"], one.data["code"], one.reason) for one in told] == [("done", "kept", "as agreed")]


async def test_what_was_accepted_before_a_kill_is_not_done_again(running: RunningOutbox) -> None:
    async def post_and_die(item: WorkItem) -> Disposition:
        await running.outbox.submit(post(f"The circle of {item.key} opens."))
        raise Killed

    await table(running).add(NewWork("ritual", "circle/2026-01-05", cause_id="expression"))
    handler = Recording(post_and_die)
    with pytest.raises(Killed):
        await loop(running, handler).run()
    await running.restart()
    await loop(running, handler).run()
    assert len(handler.seen) == 1
    assert len(await running.outbox.by_cause("expression")) == 1
    row = await table(running).get("ritual", "circle/2026-01-05")
    assert row is not None
    assert (row.state, row.outcome) == ("done", "done-before")


async def test_a_row_is_settled_together_with_what_it_stands_for_or_not_at_all(running: RunningOutbox) -> None:
    class Dying(Recording):
        def settle(self, connection: sqlite3.Connection, item: WorkItem, disposition: Disposition) -> None:
            assert connection.execute("SELECT state FROM work").fetchone()[0] == "done"
            raise Killed

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    with pytest.raises(Killed):
        await loop(running, Dying(done)).run()
    await running.restart()
    row = await table(running).get("ritual", "circle/2026-01-05")
    assert row is not None
    assert row.state == "pending"


async def test_a_row_that_was_taken_and_not_settled_is_taken_again(running: RunningOutbox) -> None:
    async def die(_: WorkItem) -> Disposition:
        raise Killed

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    with pytest.raises(Killed):
        await loop(running, Recording(die)).run()
    await running.restart()
    handler = Recording(done)
    await loop(running, handler).run()
    assert handler.seen == ["circle/2026-01-05"]


async def test_what_a_service_fails_for_a_week_is_given_up_and_told_and_what_gets_further_begins_anew(
    running: RunningOutbox,
) -> None:
    async def unable(_: WorkItem) -> Disposition:
        raise Transient("no network")

    async def later(_: WorkItem) -> Disposition:
        return Disposition("later", "quiet", "not yet")

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    handler = Recording(unable)
    work = loop(running, handler)

    async def tried(times: int) -> tuple[str, str]:
        for _ in range(times):
            await work.run()
            await running.clock.advance(1800)
        row = await table(running).get("ritual", "circle/2026-01-05")
        assert row
        return row.state, row.outcome

    assert await tried(20) == ("pending", "")
    await running.clock.advance(30 * 86_400)
    assert await tried(1) == ("pending", "")
    handler.then = later
    assert await tried(1) == ("pending", "quiet")
    handler.then = unable
    assert await tried(7 * 48) == ("pending", "")
    assert await tried(1) == ("dropped", "unable")
    told = [one.entry for one in await running.journal.recent(9) if one.entry.loop == "work"]
    assert [(one.line, one.data.get("code")) for one in told] == [("warn", "unable"), (None, "quiet"), ("warn", None)]


async def test_tries_have_a_limit_and_trouble_of_the_world_counts_as_none(running: RunningOutbox) -> None:
    async def unable(_: WorkItem) -> Disposition:
        raise Transient("no network")

    async def without_budget(_: WorkItem) -> Disposition:
        raise BudgetExceeded("nothing left today", retry_after=7200)

    async def fail(_: WorkItem) -> Disposition:
        raise ValueError("a bug")

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    handler = Recording(unable)
    work = loop(running, handler)
    for then in (unable, without_budget, fail, fail, fail):
        handler.then = then
        await work.run()
        await work.run()  # it is not due again at once
        await running.clock.advance(3601)
    assert len(handler.seen) == 4
    row = await table(running).get("ritual", "circle/2026-01-05")
    assert row is not None
    assert (row.state, row.outcome) == ("dropped", "failed")


async def test_a_clock_that_is_set_back_uses_up_no_tries(running: RunningOutbox) -> None:
    async def fail(_: WorkItem) -> Disposition:
        raise ValueError("a bug")

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    handler = Recording(fail, most_tries=5)
    work = loop(running, handler)
    running.clock.jump(-5 * 3600)
    for _ in range(4):
        await work.run()
        await running.clock.advance(PAUSE_S / 5)
    assert len(handler.seen) == 1


async def test_a_row_that_cannot_be_read_stops_no_other_and_is_given_up(running: RunningOutbox) -> None:
    async def read(item: WorkItem) -> Disposition:
        return Disposition("done", str(item.payload["ritual"]))

    rows = table(running)
    await rows.add(NewWork("ritual", "odd"), NewWork("ritual", "even", {"ritual": "kept"}))
    await running.database.run(lambda connection: connection.execute("UPDATE work SET payload = '{' WHERE key = 'odd'"))
    for _ in range(2):
        await loop(running, Recording(read)).run()
        await running.clock.advance(3601)
    found = {one.key: (one.state, one.outcome) for one in await rows.newest("ritual", 9)}
    assert found == {"odd": ("dropped", "failed"), "even": ("done", "kept")}


async def test_trouble_with_looking_for_work_stops_no_work_and_is_told_once(running: RunningOutbox) -> None:
    class Failing:
        async def perceive(self) -> None:
            raise ValueError("a bug")

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    handler = Recording(done)
    work = loop(running, handler, perceivers=(Failing(),))
    await work.run()
    await work.run()
    assert handler.seen == ["circle/2026-01-05"]
    told = [one.entry for one in await running.journal.recent(9) if one.entry.kind == "error"]
    assert [one.reason for one in told] == ["ValueError: a bug"]


async def test_that_a_row_waits_is_told_once_for_each_reason(running: RunningOutbox) -> None:
    codes = iter(["waits", "waits", "needs-owner", "waits", "needs-owner"])

    async def wait(_: WorkItem) -> Disposition:
        return Disposition("later", next(codes), retry_in_s=60)

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    work = loop(running, Recording(wait))
    for _ in range(5):
        await work.run()
        await running.clock.advance(61)
    told = [one.entry.data["code"] for one in await running.journal.recent(9) if one.entry.loop == "work"]
    assert sorted(told) == ["needs-owner", "waits"]


async def test_a_row_that_waits_for_the_owners_decision_keeps_no_soul_awake(running: RunningOutbox) -> None:
    codes = iter(["held", "under-way"])

    async def wait(_: WorkItem) -> Disposition:
        return Disposition("later", next(codes), retry_in_s=60)

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    for is_awake in (False, True):
        await loop(running, Recording(wait)).run()
        assert bool(await table(running).earliest(["ritual"])) is is_awake
        await running.clock.advance(61)


async def test_each_pause_cuts_off_what_takes_long_and_each_time_that_is_told(running: RunningOutbox) -> None:
    class TakesLong(Recording):
        is_cut_off = True

    paused: list[str] = []

    async def until_paused(_: WorkItem) -> Disposition:
        paused.append("dinner")
        await asyncio.Event().wait()
        return await done(_)

    await table(running).add(NewWork("ritual", "circle/2026-01-05"))
    work = loop(running, TakesLong(until_paused), lambda: Standing(paused=bool(paused), reasons=tuple(paused)))
    for _ in range(2):
        running_work = asyncio.create_task(work.run())
        while not running_work.done():
            await running.clock.advance(1)
        paused.clear()
        await running.clock.advance(PAUSE_S)
    told = [one.entry for one in await running.journal.recent(9) if one.entry.loop == "work"]
    assert [(one.line, one.reason, one.data["code"]) for one in told] == [("warn", "dinner", STOPPED)] * 2


async def test_the_owner_goes_first_then_each_person_in_turn_and_nothing_before_its_time(
    running: RunningOutbox,
) -> None:
    soon = running.clock.now() + timedelta(hours=1)
    await table(running).add(
        NewWork("ritual", "a1", author=ADA),
        NewWork("ritual", "a2", author=ADA),
        NewWork("ritual", "b1", author="did:plc:bob"),
        NewWork("ritual", "later", not_before=soon),
        NewWork("ritual", "owner", author="did:plc:owner", importance="owner"),
    )
    handler = Recording(done)
    await loop(running, handler, lambda: Standing(paused=True)).run()
    assert handler.seen == []
    await loop(running, handler).run()
    assert handler.seen == ["owner", "a1", "b1", "a2"]
    await running.clock.advance(3600)
    await loop(running, handler).run()
    assert handler.seen[-1] == "later"


async def test_whoever_had_turns_of_late_waits_for_those_who_had_none_and_a_rank_orders_equals(
    running: RunningOutbox,
) -> None:
    handler, rows = Recording(done), table(running)
    await rows.add(NewWork("ritual", "a1", author=ADA), NewWork("ritual", "a2", author=ADA, rank=-9))
    await loop(running, handler).run()
    bob, cleo = "did:plc:bob", "did:plc:cleo"
    await rows.add(NewWork("ritual", "a3", author=ADA, rank=-9), NewWork("ritual", "b1", author=bob))
    await rows.add(NewWork("ritual", "b2", author=bob), NewWork("ritual", "c1", author=cleo, rank=-1))
    await loop(running, handler).run()
    assert handler.seen == ["a2", "a1", "c1", "b1", "b2", "a3"]


async def test_what_comes_for_the_owner_meanwhile_goes_next(running: RunningOutbox) -> None:
    async def then(item: WorkItem) -> Disposition:
        if item.key == "a1":
            await table(running).add(NewWork("ritual", "owner", author="did:plc:owner", importance="owner"))
        return await done(item)

    await table(running).add(NewWork("ritual", "a1", author=ADA), NewWork("ritual", "b1", author="did:plc:bob"))
    handler = Recording(then)
    await loop(running, handler).run()
    assert handler.seen == ["a1", "owner", "b1"]


async def test_rows_that_only_wait_take_no_place_in_a_run_from_those_that_need_not(running: RunningOutbox) -> None:
    async def then(item: WorkItem) -> Disposition:
        return Disposition("later", "limit") if item.key.startswith("w") else await done(item)

    waiting = (NewWork("ritual", f"w{number}", author=f"did:plc:w{number}", rank=-1) for number in range(9))
    await table(running).add(*waiting, *(NewWork("ritual", f"d{number}") for number in range(3)))
    handler = Recording(then)
    work = loop(running, handler)
    work.batch = 2
    await work.run()
    assert handler.seen[9:] == ["d0", "d1"]


async def test_a_queue_lets_its_rows_wait_and_no_others_and_settled_ones_stay_so(running: RunningOutbox) -> None:
    rows, handler = table(running), Recording(done)
    one, two, other = NewWork("ritual", "one"), NewWork("ritual", "two"), NewWork("thread", "other")
    await rows.add(other)
    await rows.queue(["ritual"], [one])
    await rows.queue(["ritual"], [two])
    assert [item.key for item in await rows.due(["ritual", "thread"])] == ["other", "two"]
    await loop(running, handler).run()
    await rows.queue(["ritual"], [one, two])
    assert [item.key for item in await rows.due(["ritual"])] == ["one"]


async def test_the_work_of_a_forgotten_person_goes_and_others_name_somebody(running: RunningOutbox) -> None:
    await table(running).add(
        NewWork("ritual", "hers", author=ADA),
        NewWork("ritual", f"at://{ADA}/app.bsky.feed.post/1"),
        NewWork("ritual", "other", {"with": ADA}),
    )
    trace = Trace(Person(ADA, ("ada.example",)))

    def forget(connection: sqlite3.Connection) -> int:
        know_person(connection, trace.person)
        return WORK_OF_PEOPLE.forget(connection, trace)

    assert await running.database.run(forget) == 3
    left = await table(running).newest("ritual", 9)
    assert [one.key for one in left] == ["other"]
    assert ADA not in str(left[0].payload)


ADA_ACTOR = actor("ada")


async def read(turns: PersonTurns, error: Exception | None = None) -> None:
    async with turns.turn(ADA_ACTOR, "stranger"):
        if error:
            raise error


async def test_one_account_has_so_many_turns_in_an_hour_and_sixty_in_a_day(journal: Journal) -> None:
    clock, limits, in_an_hour = FakeClock(START), limits_of("stranger"), 8
    turns = PersonTurns(clock, journal=journal, loop="awareness")
    had, hours = 0, 0
    while had < 60:
        while (wait := turns.wait(ADA_ACTOR.did, limits)) is None:
            await read(turns)
            had += 1
        assert wait[0] == (limits[1] if had == 60 else limits[0])
        assert had == min(60, in_an_hour * (hours + 1))
        await clock.advance(3600)
        hours += 1
    assert had == 60
    assert turns.wait("did:plc:bob", limits) is None
    wait = turns.wait(ADA_ACTOR.did, limits)
    assert wait is not None
    assert wait[1] == 86_400 - hours * 3600
    await clock.advance(wait[1])
    assert turns.wait(ADA_ACTOR.did, limits) is None


async def test_who_is_forgotten_and_comes_back_has_no_fresh_turns(journal: Journal, database: Database) -> None:
    before, after = (PersonTurns(FakeClock(START), journal=journal, loop="awareness") for _ in range(2))
    for _ in range(6):
        await read(before)
    with pytest.raises(Transient):
        await read(before, Transient("down"))
    person = Person(ADA_ACTOR.did, (ADA_ACTOR.handle,))

    def forget(connection: sqlite3.Connection) -> None:
        know_person(connection, person)
        JOURNAL_OF_PEOPLE.forget(connection, Trace(person))
        assert not [row for row in connection.execute("SELECT * FROM journal") if ADA_ACTOR.handle in str(tuple(row))]

    await database.run(forget)
    for _ in range(2):
        assert await after.must_wait(ADA_ACTOR, limits_of("stranger")) is None
        await read(after)
    assert await after.must_wait(ADA_ACTOR, limits_of("stranger"))
    assert await after.must_wait(actor("bob"), limits_of("stranger")) is None


async def test_a_turn_that_no_model_answered_does_not_count_also_after_a_restart(journal: Journal) -> None:
    before, after = (PersonTurns(FakeClock(START), journal=journal, loop="awareness") for _ in range(2))
    for _ in range(30):
        with pytest.raises(Transient):
            await read(before, Transient("down"))
    for turns in (before, after):
        assert await turns.must_wait(ADA_ACTOR, limits_of("stranger")) is None
    for _ in range(8):
        await read(after)
    assert await after.must_wait(ADA_ACTOR, limits_of("stranger"))


async def test_a_turn_counts_for_an_hour_also_if_the_machine_sleeps_meanwhile(journal: Journal) -> None:
    clock = FakeClock(START)
    turns = PersonTurns(clock, journal=journal, loop="awareness")
    for _ in range(8):
        await read(turns)
    assert await turns.must_wait(ADA_ACTOR, limits_of("stranger"))
    clock.jump(3600)
    assert await turns.must_wait(ADA_ACTOR, limits_of("stranger")) is None
