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
from modules.lives.messages.alarms import Alarm, stopped_alarm
from modules.runtime.control import forget_starts
from modules.runtime.database.file import open_existing
from modules.runtime.database.schema import OLDEST_SCHEMA
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.figures import figures_between
from modules.runtime.journal.types import Entry
from modules.runtime.program import become, is_ours, keep, kept, this_program
from modules.services.burn_in.burn_in import BurnIn, current, note_end, note_lived, note_settled, note_start
from modules.services.burn_in.policy import BURN_IN_S, COMPARED, SETTLED_S, verdict
from modules.services.work.table import add
from soul.app import App
from soul.terminal.output import write_lines

_LOOK_S = 60.0


@contextmanager
def burning_in(settings: Settings, home: Home) -> Iterator[None]:
    """Count a start, and afterwards that it ended as it should. Raises what keeps this version from living here."""
    with suppress(StorageError, Transient, sqlite3.Error):  # the life itself tells of a database that cannot be used
        if home.database.exists() and not (_has_no_trial(home) and is_ours()):
            with HomeLock(home, agent_name=settings.agent_name, started_at=SystemClock().now()):
                _note_start(settings, home)
    try:
        yield
    except SoulError:
        _note_end(home)
        raise
    _note_end(home)


def _has_no_trial(home: Home) -> bool:
    with closing(open_existing(home.database, "ro", oldest=OLDEST_SCHEMA)) as connection:
        return current(connection) is None


def _note_start(settings: Settings, home: Home) -> None:
    now, me = SystemClock().now(), this_program()
    with closing(open_existing(home.database, "rw", oldest=OLDEST_SCHEMA)) as connection:
        was = current(connection)
        connection.execute("BEGIN IMMEDIATE")
        known = note_start(connection, me, now, judged=not is_ours())
        if known and known.bad:
            add(connection, [one.work() for one in _alarms(settings, known)], iso(now))
        connection.execute("COMMIT")
    if known and known.bad and me.fingerprint == known.program.fingerprint:
        raise known.error()
    if known and known.is_back and not (was and was.is_back):
        forget_starts(home.memory)  # they are those of the version that crashed


def _note_end(home: Home) -> None:
    with suppress(SoulError, sqlite3.Error), closing(open_existing(home.database, "rw")) as connection:
        note_end(connection)


def _alarms(settings: Settings, known: BurnIn) -> Iterator[Alarm]:
    """Yield what the owner is told of a version that was put back: each once, at whatever start."""
    name, told = settings.agent_name, str(known.error())
    yield stopped_alarm(name, told, parse_iso(known.bad_at), settings.soul_timezone)
    if known.again:
        again = f"{name}: {known.again}, with version {known.before.version} too: {known.program.version} is not why"
        yield Alarm("stopped", f"again/{known.began}", again)


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
    """Count what is lived, and judge the version every ten minutes; keep a copy of one that lives well.

    A version that proves bad ends this life; of the version before, once it is back, that is only told.
    """
    services = app.services
    clock, database, journal = services.clock, services.database, services.journal
    me = await asyncio.to_thread(this_program)
    counted_s, judged_s, settled = 0.0, 0.0, False
    begun_s = clock.monotonic()
    while True:
        await clock.sleep(clock.real(_LOOK_S))
        lived_s = clock.lived(clock.monotonic() - begun_s)
        is_due = lived_s - judged_s >= SETTLED_S
        try:
            known = await database.read(current)
            problem = await _problem(app, known) if is_due and known and not known.is_over else ""
            known = await database.run(
                partial(note_lived, lived_s=lived_s - counted_s, problem=problem, now=clock.now())
            )
            counted_s, judged_s = lived_s, lived_s if is_due else judged_s
            if problem and known:
                if known.program.fingerprint == me.fingerprint:
                    app.scheduler.doom(known.error())
                    return
                await services.work.add(*(one.work() for one in _alarms(services.settings, known)))
            if is_due and not settled:
                await database.run(partial(note_settled, me=me))
                settled = True
                if is_ours():
                    await asyncio.to_thread(keep, me)
            if known and known.is_over and not known.bad:
                summary = f"Version {me.version} has lived here for {BURN_IN_S / 3600:.0f} hours, and stays"
                await journal.record(Entry("life", "upgrade", summary, line="done"))
            if settled and (known is None or known.is_over):
                return
        except (MachineTrouble, Transient):
            continue
        except StorageError as error:
            summary = "No copy of this version could be kept: it cannot come back by itself after an upgrade"
            await journal.record_or_show(Entry("error", "upgrade", summary, line="warn", reason=str(error)))


async def _problem(app: App, known: BurnIn) -> str:
    began = parse_iso(known.began)
    spans = (iso(began - COMPARED), known.began), (known.since, iso(app.services.clock.now()))
    before, now = [
        await app.services.database.read(partial(figures_between, since=since, until=until)) for since, until in spans
    ]
    return verdict(before, now)
