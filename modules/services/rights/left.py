"""Tells the owner in which of their files a forgotten person is still named. Pure.

Nothing here names the person: a place is a file and line numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from common.wording import counted, number
from modules.runtime.journal.types import Entry

LOOP, FORGOT, REQUEST = "rights", "forgot", "request"

MOST_PLACES = 12
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class NamingFile:
    """A file that still names the person and that only the owner changes: path in the home, line numbers, a note."""

    path: str
    lines: tuple[int, ...] = ()
    note: str = ""

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.lines[:_MOST_LINES]))
        more = " and more" if len(self.lines) > _MOST_LINES else ""
        where = f"{'line' if len(self.lines) == 1 else 'lines'} {shown}{more}" if shown else ""
        about = "; ".join(filter(None, (where, self.note)))
        return f"{self.path} ({about})" if about else self.path


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of a request: counts of deleted or changed rows and files, and the owner's files that name the person.

    Of the memories, `notes` were deleted and `redacted` lost the person's names.
    """

    rows: int
    files: int
    left: tuple[NamingFile, ...] = ()
    notes: int = 0
    redacted: int = 0

    def __str__(self) -> str:
        deleted = f"; {counted(self.notes, 'memory', 'memories')} deleted" if self.notes else ""
        redacted = f"; names taken out of {counted(self.redacted, 'memory', 'memories')}" if self.redacted else ""
        return f"{counted(self.rows, 'row')}, {counted(self.files, 'file')}{deleted}{redacted}"


def entry_of(done: Forgotten) -> Entry:
    """Return the journal entry about it; the owner sees a line if they have something to do."""
    data = {"act": FORGOT, **asdict(done)}
    reason = f"still named in {places_text(done.left)}; only you change that" if done.left else ""
    is_told = bool(done.left or done.redacted)
    return Entry("life", LOOP, f"Somebody was forgotten: {done}", "warn" if is_told else None, reason, data=data)


def left_in(data: dict[str, Any]) -> tuple[NamingFile, ...]:
    """Return the places in the data of such an entry."""
    return tuple(NamingFile(one["path"], tuple(one["lines"]), one["note"]) for one in data.get("left", ()))


def places_text(places: Iterable[NamingFile], most: int = MOST_PLACES) -> str:
    """Return the first `most` places as one text, each once, and how many more there are."""
    known = list(dict.fromkeys(map(str, places)))
    more = [f"{number(len(known) - most)} more"] if len(known) > most else []
    return ", ".join([*known[:most], *more])
