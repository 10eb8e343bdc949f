"""Which version lives in a home on trial, kept in `soul.db`. Each function is one step of a caller's transaction.

One commit decides that a version goes back: `bad` is set. All else follows from it at each start, so that a kill at
any moment changes nothing: the bad version does not live here again, and the one before goes on in the home as it is.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from common.clock import iso
from common.errors import ConfigError, Fatal, PutBack
from modules.runtime.database import marks
from modules.runtime.program import ProgramVersion
from modules.services.burn_in.policy import BURN_IN_S, crash_loop

_SETTLED = "program"


@dataclass(frozen=True, slots=True)
class BurnIn:
    """The trial of a version.

    Attributes:
        program: the version on trial.
        before: the last one that was not; without a version where none is known.
        began: when it took over, ISO-8601.
        since: from when on figures count: as `began`, or when the version before came back.
        lived_s: how much was lived since, in lived seconds.
        starts: how often it started without an orderly end and without having lived long.
        bad: why it is not to live here any more, "" as long as it may; `bad_at` is since when.
        again: what went wrong in the same way with the version before, once it was back.

    """

    program: ProgramVersion
    before: ProgramVersion
    began: str
    since: str
    lived_s: float = 0.0
    starts: int = 0
    bad: str = ""
    bad_at: str = ""
    again: str = ""

    @classmethod
    def parsed(cls, text: str) -> Self | None:
        """Return what a mark holds; None where that is no trial."""
        try:
            told = json.loads(text)
            program, before = (ProgramVersion(**told.pop(name)) for name in ("program", "before"))
            return cls(program, before, **told)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    @property
    def is_back(self) -> bool:
        """Whether the version before has woken again."""
        return bool(self.bad) and self.since > self.bad_at

    @property
    def is_over(self) -> bool:
        return self.lived_s >= BURN_IN_S

    @property
    def fits(self) -> bool:
        """Whether the version before can go on in the home as it is."""
        return self.before.schema == self.program.schema

    def error(self) -> Fatal:
        """Return what ends a life of the version that was put back."""
        told = f"Version {self.program.version} is put back: {self.bad}"
        anyway = f"to live with {self.program.version} all the same, run `soul upgrade` again."
        if self.fits:
            return PutBack(told, remedy=f"Install version {self.before.version or 'before'}, or its image; {anyway}")
        copy = "restore `before-*.soul`, which lacks what happened since, with the version before"
        return ConfigError(
            f"{told}. The version before cannot read its database", remedy=f"{copy[0].upper()}{copy[1:]}; {anyway}"
        )


def current(connection: sqlite3.Connection) -> BurnIn | None:
    """Return the trial of this home; None if there is none."""
    return BurnIn.parsed(marks.get(connection, marks.BURN_IN))


def begin(connection: sqlite3.Connection, me: ProgramVersion, now: datetime) -> BurnIn | None:
    """Put a version on trial that took over; return the trial, None where no other version lived here before.

    One that was put back, and is taken over again, is the owner's choice: it is not judged again.
    """
    known, settled = current(connection), _settled(connection)
    if known and known.program.fingerprint == me.fingerprint:
        if not known.bad:
            return known
        marks.remove(connection, marks.BURN_IN)
        note_settled(connection, me)
        return None
    if known is None and settled.fingerprint in {"", me.fingerprint}:
        return None
    begun = BurnIn(me, known.before if known else settled, iso(now), iso(now))
    if begun.before.fingerprint == me.fingerprint:
        marks.remove(connection, marks.BURN_IN)
        return None
    _put(connection, begun)
    return begun


def burn_in_fields(connection: sqlite3.Connection, now: datetime) -> dict[str, Any] | None:
    """Return the trial for programs, in the camelCase of the status; `until` is when it ends if it lives on."""
    known = current(connection)
    if known is None:
        return None
    return {
        "version": known.program.version,
        "before": known.before.version,
        "hours": BURN_IN_S / 3600,
        "livedHours": known.lived_s / 3600,
        "until": iso(now + timedelta(seconds=max(0.0, BURN_IN_S - known.lived_s))),
        "bad": known.bad,
        "isBack": known.is_back,
        "again": known.again,
    }


def note_start(connection: sqlite3.Connection, me: ProgramVersion, now: datetime, *, judged: bool) -> BurnIn | None:
    """Count a start of the version that runs; return the trial, None if there is none for it.

    `judged` tells whether this version took over by starting, as an image does.
    """
    known = current(connection)
    is_new = known is None or me.fingerprint not in {known.program.fingerprint, known.before.fingerprint}
    if is_new:
        if judged and (begun := begin(connection, me, now)):
            known = begun
        else:
            marks.remove(connection, marks.BURN_IN)
            return None
    if known is None:
        return None
    is_before = me.fingerprint == known.before.fingerprint
    if is_before and not known.bad:
        marks.remove(connection, marks.BURN_IN)
        return None
    if is_before and not known.is_back:
        known = replace(known, since=iso(now), lived_s=0.0, starts=0)
    crashed = crash_loop(known.starts)
    if crashed and not known.bad:
        known = replace(known, bad=crashed, bad_at=iso(now))
    elif crashed:
        known = replace(known, again=known.again or crashed)
    known = replace(known, starts=known.starts + 1)
    _put(connection, known)
    return known


def note_end(connection: sqlite3.Connection) -> None:
    """Count no start any more: this life ended as it should."""
    if known := current(connection):
        _put(connection, replace(known, starts=0))


def note_settled(connection: sqlite3.Connection, me: ProgramVersion) -> None:
    """Keep in mind that a version lived here for a while: no start of it was one of a crash loop."""
    marks.put(connection, {_SETTLED: json.dumps(asdict(me))})
    note_end(connection)


def note_lived(connection: sqlite3.Connection, lived_s: float, problem: str, now: datetime) -> BurnIn | None:
    """Count what was lived, and let a version with a `problem` go back; return the trial, None if it is over.

    Of the version before, once it is back, a problem is only kept.
    """
    known = current(connection)
    if known is None or known.is_over:
        return None
    known = replace(known, lived_s=known.lived_s + lived_s)
    if known.bad:
        known = replace(known, again=known.again or problem)
    elif problem:
        known = replace(known, bad=problem, bad_at=iso(now))
    if known.is_over and not known.bad:
        marks.remove(connection, marks.BURN_IN)
    else:
        _put(connection, known)
    return known


def _settled(connection: sqlite3.Connection) -> ProgramVersion:
    try:
        return ProgramVersion(**json.loads(marks.get(connection, _SETTLED)))
    except (ValueError, TypeError):
        return ProgramVersion()


def _put(connection: sqlite3.Connection, burn_in: BurnIn) -> None:
    marks.put(connection, {marks.BURN_IN: json.dumps(asdict(burn_in))})
