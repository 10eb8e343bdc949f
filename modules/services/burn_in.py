"""The version that lives in a home, the one before while it is on trial (one mark in `soul.db`), and the verdict.

Each function is one step of a caller's transaction. One commit decides that a version is put back: `bad` is set. Each
start acts on it, wherever a process was killed: the version before continues in the home as it is.
"""

import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field, TypeAdapter

from common.clock import iso
from common.errors import PutBack
from modules.runtime.database import marks
from modules.runtime.journal.figures import GoodShare, VersionFigures, figures_around, newest_entry
from modules.runtime.program import ProgramVersion

BURN_IN_S = 48 * 3600.0
"""The lived seconds of a new version before it is trusted like the one before."""
TICK_S = 60.0
"""Life is counted in ticks of this many lived seconds, so that changes of the clock do not matter."""
SETTLED_TICKS = 10
"""A life of this many ticks is not part of a crash loop."""
CRASHES = 3
_MANY_FAULTS = 5
_LEAST_CASES, _LEAST_PEOPLE = 10, 3
_FALLEN = 0.5


def verdict(before: VersionFigures, now: VersionFigures) -> str:
    """Return in words why a version is worse than the one before; "" if it is not known to be."""
    new = (place for place, count in now.faults.items() if count >= _MANY_FAULTS and not before.faults.get(place))
    if place := next(new, ""):
        return f"{place} failed {now.faults[place]} times by a fault of the program, and never before"
    if _is_fallen(before.answered, now.answered):
        return f"only {now.answered.share:.0%} of what was to be answered was, after {before.answered.share:.0%} before"
    if _is_fallen(before.taken, now.taken):
        return f"{1 - now.taken.share:.0%} of the turns had something sent back, after {1 - before.taken.share:.0%}"
    return ""


def _is_fallen(before: GoodShare, now: GoodShare) -> bool:
    is_known = all(one.cases >= _LEAST_CASES and one.people >= _LEAST_PEOPLE for one in (before, now))
    return is_known and now.share <= before.share * _FALLEN


@dataclass(frozen=True, slots=True)
class HomeProgram:
    """The version `program` lives in a home; if there is a version `before`, it is on trial or was put back.

    It took over after the journal entry `since`, has lived for `lived_s` lived seconds, and had `starts` starts without
    an orderly end or ten minutes of life. `bad` is why it must no longer live here, or "".
    """

    program: ProgramVersion
    before: ProgramVersion | None = None
    since: Annotated[int, Field(ge=0, lt=2**63)] = 0
    lived_s: Annotated[float, Field(ge=0, le=BURN_IN_S)] = 0.0
    starts: int = 0
    bad: str = ""

    def error(self) -> PutBack:
        """Return the error that ends a life of the version that was put back."""
        before, version = self.before.version if self.before else "", self.program.version
        remedy = f"Install version {before}. To keep {version} all the same, run `soul upgrade` again."
        return PutBack(f"Version {version} is put back: {self.bad}", remedy=remedy)

    def fields(self, now: datetime) -> dict[str, object] | None:
        """Return the trial for programs, in camelCase; `until` is when it ends if the SOUL stays awake."""
        if self.before is None:
            return None
        lived, until = self.lived_s / 3600, iso(now + timedelta(seconds=BURN_IN_S - self.lived_s))
        versions = {"version": self.program.version, "before": self.before.version}
        return {**versions, "livedHours": lived, "hours": BURN_IN_S / 3600, "until": until, "bad": self.bad}


_HOME_PROGRAM = TypeAdapter(HomeProgram)


def current(connection: sqlite3.Connection) -> HomeProgram | None:
    """Return the version that lives here; None if that is unknown or its mark cannot be read."""
    try:
        return _HOME_PROGRAM.validate_json(marks.get(connection, marks.PROGRAM))
    except ValueError:
        return None


def take_over(connection: sqlite3.Connection, me: ProgramVersion) -> HomeProgram | None:
    """Put a version on trial; return the trial, or None if no known version could continue here unchanged.

    A version that was put back and takes over again is the owner's choice and is not judged again.
    """
    if (known := current(connection)) is None:
        return None
    before = known.before or known.program
    if known.program == me and known.before and not known.bad:
        return known
    if me in {known.program, before}:
        _put(connection, HomeProgram(me))
        return None
    trial = HomeProgram(me, before, newest_entry(connection))
    return _put(connection, trial) if me.schema == before.schema else None


def note_start(connection: sqlite3.Connection, me: ProgramVersion) -> HomeProgram | None:
    """Count a start of the running version; a trial ends if the owner has installed another one."""
    known = current(connection)
    if known is None or known.before is None or (known.bad and me in {known.program, known.before}):
        return known
    if me != known.program:
        return _put(connection, HomeProgram(known.before))
    bad = f"it crashed {known.starts} times in a row" if known.starts >= CRASHES else ""
    return _put(connection, replace(known, starts=known.starts + 1, bad=bad))


def note_end(connection: sqlite3.Connection) -> None:
    """Reset the count of starts: this life ended in order."""
    if known := current(connection):
        _put(connection, replace(known, starts=0))


def problem_of(connection: sqlite3.Connection) -> str:
    """Return why the version on trial is to be put back by its figures, or ""."""
    known = current(connection)
    return verdict(*figures_around(connection, known.since)) if known and known.before and not known.bad else ""


def note_lived(
    connection: sqlite3.Connection, me: ProgramVersion, problem: str = "", *, is_settled: bool
) -> HomeProgram | None:
    """Count one tick of the running version; a `problem` puts it back, and `is_settled` ends the count of starts."""
    known = current(connection)
    if known and known.bad:
        return known
    if known and known.before and known.program == me:
        lived_s, starts = min(known.lived_s + TICK_S, BURN_IN_S), 0 if is_settled else known.starts
        if problem or lived_s < BURN_IN_S:
            return _put(connection, replace(known, lived_s=lived_s, starts=starts, bad=problem))
        is_settled = True
    return _put(connection, HomeProgram(me)) if is_settled else known


def _put(connection: sqlite3.Connection, known: HomeProgram) -> HomeProgram:
    marks.put(connection, {marks.PROGRAM: json.dumps(asdict(known))})
    return known
