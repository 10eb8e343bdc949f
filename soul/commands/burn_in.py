"""The burn-in of a version, at the start of a life and during it, and the return to the version before."""

import asyncio
import itertools
import sqlite3
import sys
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress

from common.clock import Clock, SystemClock, iso
from common.errors import MachineTrouble, SoulError, StorageError, Transient
from common.settings import Settings
from modules.lives.messages.alarms import stopped_alarm
from modules.runtime.control import forget_starts
from modules.runtime.database.file import open_existing
from modules.runtime.database.schema import OLDEST_SCHEMA
from modules.runtime.home import Home, HomeLock
from modules.runtime.program import become, keep, kept, this_program
from modules.services.burn_in import (
    SETTLED_TICKS,
    TICK_S,
    HomeProgram,
    current,
    note_end,
    note_lived,
    note_start,
    problem_of,
)
from modules.services.work.table import add
from soul.app import App
from soul.terminal.output import write_lines


@contextmanager
def burning_in(settings: Settings, home: Home) -> Iterator[None]:
    """Count a start; reset the count at an end without a crash. Raises if this version was put back in this home."""
    with suppress(StorageError, Transient, sqlite3.Error):  # the life itself reports an unusable database
        if home.database.exists():
            _note_start(settings, home)
    try:
        yield
    except SoulError:
        _note_end(home)
        raise
    _note_end(home)


def _note_start(settings: Settings, home: Home) -> None:
    clock = SystemClock()
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        before = current(connection)
        if before is None or before.before is None:
            return
        me = this_program()
        with HomeLock(home, agent_name=settings.agent_name, started_at=clock.now()):
            connection.execute("BEGIN IMMEDIATE")
            known = note_start(connection, me)
            if known and known.bad and not before.bad:
                _tell(connection, settings, known, clock)
            connection.execute("COMMIT")
            if known and known.bad and me == known.program:
                forget_starts(home.memory)  # they do not count for the version before
                raise known.error()


def _tell(connection: sqlite3.Connection, settings: Settings, known: HomeProgram, clock: Clock) -> None:
    """Queue an alarm that the version that runs here next sends to the owner."""
    alarm = stopped_alarm(settings.agent_name, str(known.error()), clock.now(), settings.soul_timezone)
    add(connection, [alarm.work()], iso(clock.now()))


def _note_end(home: Home) -> None:
    with suppress(SoulError, sqlite3.Error), closing(open_existing(home.database, "rw")) as connection:
        note_end(connection)


def go_on_as_before(settings: Settings, home: Home, once: Collection[str]) -> None:
    """Become the version before, if a copy is kept, without the arguments `once`, which are meant for one start."""
    with closing(open_existing(home.database, "rw")) as connection:
        known = current(connection)
    if known and known.before and kept(known.before):
        write_lines(f"◆ Version {known.program.version} is put back ({known.bad}): {known.before.version} goes on")
        with HomeLock(home, agent_name=settings.agent_name, started_at=SystemClock().now()):
            become(known.before, home.root / ".before", [word for word in sys.argv[1:] if word not in once])


async def watch_burn_in(app: App) -> None:
    """Count the lived time, judge a version on trial every ten minutes, and keep a copy after the first ten."""
    services = app.services
    me = await asyncio.to_thread(this_program)

    def lived(connection: sqlite3.Connection) -> HomeProgram | None:
        known = note_lived(connection, me, problem, is_settled=is_due)
        if known and known.bad and known.program == me:
            _tell(connection, services.settings, known, services.clock)
        return known

    for tick in itertools.count(1):
        await services.clock.sleep(services.clock.real(TICK_S))
        is_due = tick % SETTLED_TICKS == 0
        try:
            problem = await services.database.read(problem_of) if is_due else ""
            known = await services.database.run(lived)
        except (MachineTrouble, Transient):
            continue
        if known and known.bad and known.program == me:
            app.scheduler.doom(known.error())
            return
        if tick == SETTLED_TICKS and known:
            with suppress(SoulError):  # `soul upgrade` reports a missing copy
                await asyncio.to_thread(keep, me, known.before or me)
        if is_due and not (known and known.before and known.program == me):
            return
