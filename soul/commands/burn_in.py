"""The burn-in of a version, at the start of a life and during it; how the version before goes on in its place.

`modules/services/burn_in` says what is counted and what follows from it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

from common.clock import SystemClock, iso, parse_iso
from common.errors import MachineTrouble, SoulError, StorageError, Transient
from common.settings import Settings
from modules.lives.messages.alarms import stopped_alarm
from modules.runtime.control import forget_starts
from modules.runtime.database.file import open_existing
from modules.runtime.database.schema import OLDEST_SCHEMA
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.types import Entry
from modules.runtime.program import become, is_ours, keep, kept, this_program
from modules.services.burn_in.burn_in import current, note_end, note_lived, note_settled, note_start, problem_of
from modules.services.burn_in.policy import SETTLED_S
from modules.services.work.table import add
from soul.app import App
from soul.terminal.output import write_lines

_LOOK_S = 60.0


@contextmanager
def burning_in(settings: Settings, home: Home) -> Iterator[None]:
    """Count a start, and afterwards that it ended as it should. Raises what keeps this version from living here."""
    with suppress(StorageError, Transient, sqlite3.Error):  # the life itself tells of a database that cannot be used
        if home.database.exists():
            _note_start(settings, home)
    try:
        yield
    except SoulError:
        _note_end(home)
        raise
    _note_end(home)


def _note_start(settings: Settings, home: Home) -> None:
    now = SystemClock().now()
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        if current(connection) is None and is_ours():
            return
        me = this_program()
        with HomeLock(home, agent_name=settings.agent_name, started_at=now):
            connection.execute("BEGIN IMMEDIATE")
            known = note_start(connection, me, now, begins=not is_ours())
            if known and known.bad:
                why, since = str(known.error()), parse_iso(known.bad_at)
                add(
                    connection,
                    [stopped_alarm(settings.agent_name, why, since, settings.soul_timezone).work()],
                    iso(now),
                )
            connection.execute("COMMIT")
            if known and known.bad and me.fingerprint == known.program.fingerprint:
                forget_starts(home.memory)  # they are none of the version before
                raise known.error()


def _note_end(home: Home) -> None:
    with suppress(SoulError, sqlite3.Error), closing(open_existing(home.database, "rw")) as connection:
        note_end(connection)


def go_on_as_before(home: Home, once: Collection[str]) -> None:
    """Go on as the version before, where this one is put back; return where that is not kept here.

    `once` are the arguments that are meant for one start.
    """
    with closing(open_existing(home.database, "rw")) as connection:
        known = current(connection)
    if known and (folder := kept(known.before)):
        write_lines(f"◆ Version {known.program.version} is put back ({known.bad}): {known.before.version} goes on")
        become(folder, [word for word in sys.argv[1:] if word not in once])


async def watch_burn_in(app: App) -> None:
    """Count what is lived, and judge the version on trial every ten minutes; keep a copy of one that lived so long."""
    clock, database, journal = app.services.clock, app.services.database, app.services.journal
    me, begun_s = await asyncio.to_thread(this_program), clock.monotonic()
    counted_s = judged_s = 0.0
    is_settled, known = False, None
    while not is_settled or known:
        await clock.sleep(clock.real(_LOOK_S))
        lived_s, now = clock.lived(clock.monotonic() - begun_s), clock.now()
        try:
            is_due = lived_s - judged_s >= SETTLED_S
            problem = await database.read(partial(problem_of, now=now)) if is_due else ""
            known = await database.run(partial(note_lived, lived_s=lived_s - counted_s, problem=problem, now=now))
            counted_s, judged_s = lived_s, lived_s if is_due else judged_s
            if known and known.bad:
                app.scheduler.doom(known.error())
                return
            if is_due and not is_settled:
                await database.run(partial(note_settled, me=me))
                is_settled = True
                if is_ours():
                    await asyncio.to_thread(keep, me, *([known.before] if known else ()))
        except (MachineTrouble, Transient):
            continue
        except StorageError as error:
            summary = "No copy of this version could be kept: it cannot come back by itself after an upgrade"
            await journal.record_or_show(Entry("error", "upgrade", summary, line="warn", reason=str(error)))
