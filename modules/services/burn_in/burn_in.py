"""Which version lives in a home on trial, kept in `soul.db`. Each function is one step of a caller's transaction.

One commit decides that a version goes back: `bad` is set. All else follows from it at each start, so a kill at any
moment changes nothing: the bad version does not live here again, and the one before goes on in the home as it is.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from pydantic import TypeAdapter

from common.clock import iso, parse_iso
from common.errors import ConfigError, Fatal, PutBack
from modules.runtime.database import marks
from modules.runtime.journal.figures import figures_between
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.policy import BURN_IN_S, COMPARED, crash_loop, verdict

_SETTLED = "program"


@dataclass(frozen=True, slots=True)
class BurnIn:
    """The trial of the version `program`, which took over at `began` from the one `before`. Times are ISO-8601.

    It has lived for `lived_s` lived seconds, and started so often without an orderly end or ten minutes of life; `bad`
    is why it is not to live here any more since `bad_at`, "" as long as it may.
    """

    program: ProgramVersion
    before: ProgramVersion
    began: str
    lived_s: float = 0.0
    starts: int = 0
    bad: str = ""
    bad_at: str = ""

    @property
    def fits(self) -> bool:
        """Whether the version before can go on in the home as it is."""
        return self.before.schema == self.program.schema

    def error(self) -> Fatal:
        """Return what ends a life of the version that was put back."""
        told, before = f"Version {self.program.version} is put back: {self.bad}", f"version {self.before.version}"
        anyway = f"To keep {self.program.version} all the same, run `soul upgrade` again."
        if self.fits:
            return PutBack(told, remedy=f"Install {before}, or its image. {anyway}")
        remedy = f"Restore `before-*.soul`, which lacks what happened since, with {before}. {anyway}"
        return ConfigError(f"{told}; but {before} cannot read its database", remedy=remedy)

    def fields(self, now: datetime) -> dict[str, object]:
        """Return it for programs, in camelCase; `until` is when it ends if the SOUL stays awake."""
        lived, until = self.lived_s / 3600, iso(now + timedelta(seconds=BURN_IN_S - self.lived_s))
        versions = {"version": self.program.version, "before": self.before.version}
        return {**versions, "livedHours": lived, "hours": BURN_IN_S / 3600, "until": until, "bad": self.bad}


_BURN_IN, _VERSION = TypeAdapter(BurnIn), TypeAdapter(ProgramVersion)


def current(connection: sqlite3.Connection) -> BurnIn | None:
    """Return the trial of this home; None if there is none, or its mark cannot be read."""
    try:
        known = _BURN_IN.validate_json(marks.get(connection, marks.BURN_IN))
        moments = (parse_iso(moment) for moment in (known.began, known.bad_at or known.began))
        are_times = all(iso(moment + shift) for moment in moments for shift in (-COMPARED, COMPARED))
    except (ValueError, OverflowError):
        return None
    return known if are_times and 0 <= known.lived_s <= BURN_IN_S else None


def begin(connection: sqlite3.Connection, me: ProgramVersion, now: datetime) -> BurnIn | None:
    """Put a version that takes over on trial; return the trial, None where no other version lived here before.

    One that was put back, and is taken over again, is the owner's choice: it is not judged again.
    """
    known, before = current(connection), _settled(connection)
    if known and known.program.fingerprint == me.fingerprint:
        if not known.bad:
            return known
        note_settled(connection, me)
        before = me
    elif known:
        before = known.before
    marks.remove(connection, marks.BURN_IN)
    if before.fingerprint in {"", me.fingerprint}:
        return None
    return _put(connection, BurnIn(me, before, iso(now)))


def note_start(connection: sqlite3.Connection, me: ProgramVersion, now: datetime, *, begins: bool) -> BurnIn | None:
    """Count a start of the version that runs; return the trial, None if there is none, or the owner ended it.

    `begins` tells whether another version takes over by starting, as an image does.
    """
    known = current(connection)
    if known and known.bad and me.fingerprint == known.before.fingerprint:
        return known
    if known is None or me.fingerprint != known.program.fingerprint:
        known = begin(connection, me, now) if begins else None
    if known is None:
        marks.remove(connection, marks.BURN_IN)
    if known is None or known.bad:
        return known
    bad = crash_loop(known.starts)
    return _put(connection, replace(known, starts=known.starts + 1, bad=bad, bad_at=iso(now)))


def note_end(connection: sqlite3.Connection) -> None:
    """Count no start any more: this life ended as it should."""
    if known := current(connection):
        _put(connection, replace(known, starts=0))


def note_settled(connection: sqlite3.Connection, me: ProgramVersion) -> None:
    """Keep in mind that a version lived here for a while: no start of it was one of a crash loop."""
    marks.put(connection, {_SETTLED: json.dumps(asdict(me))})
    note_end(connection)


def problem_of(connection: sqlite3.Connection, now: datetime) -> str:
    """Return why the version on trial is to go back by its figures, or ""."""
    known = current(connection)
    if known is None or known.bad:
        return ""
    since = iso(parse_iso(known.began) - COMPARED)
    return verdict(figures_between(connection, since, known.began), figures_between(connection, known.began, iso(now)))


def note_lived(connection: sqlite3.Connection, lived_s: float, problem: str, now: datetime) -> BurnIn | None:
    """Count what was lived, and let a version with a `problem` go back; return the trial, None where it is over."""
    known = current(connection)
    if known is None or known.bad:
        return None
    known = replace(known, lived_s=min(known.lived_s + lived_s, BURN_IN_S), bad=problem, bad_at=iso(now))
    if known.lived_s < BURN_IN_S or problem:
        return _put(connection, known)
    marks.remove(connection, marks.BURN_IN)
    return None


def _settled(connection: sqlite3.Connection) -> ProgramVersion:
    try:
        return _VERSION.validate_json(marks.get(connection, _SETTLED))
    except ValueError:
        return ProgramVersion()


def _put(connection: sqlite3.Connection, burn_in: BurnIn) -> BurnIn:
    marks.put(connection, {marks.BURN_IN: json.dumps(asdict(burn_in))})
    return burn_in
