"""The runs of rituals in `soul.db`: one row per ritual and local date, so that a day has one thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from modules.runtime.database.database import Database
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.rituals.policy import OPENING_KIND, RITUAL_HISTORY_MAX
from modules.services.rituals.types import RitualRun, RunRole
from modules.services.work.table import newest

_COLUMNS = "key, day, name, role, thread_uri, opener, artefact_url, note, took_part"


@dataclass(slots=True)
class RitualRuns:
    """Adds, reads and completes runs; each call is one transaction."""

    database: Database

    async def add(self, run: RitualRun) -> RitualRun:
        """Add a run; return the one that stands for that ritual and date, which is another where one stood before."""

        def write(connection: sqlite3.Connection) -> RitualRun:
            connection.execute(
                f"INSERT OR IGNORE INTO ritual_runs ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (*_values(run), run.artefact_url, run.note, json.dumps(run.took_part)),
            )
            connection.execute(
                "DELETE FROM ritual_runs WHERE key = ? AND day NOT IN"
                " (SELECT day FROM ritual_runs WHERE key = ? ORDER BY day DESC LIMIT ?)",
                (run.key, run.key, RITUAL_HISTORY_MAX),
            )
            return _runs(connection, "WHERE key = ? AND day = ?", run.key, run.day.isoformat())[0]

        return await self.database.run(write)

    async def of_day(self, key: str, day: date) -> RitualRun | None:
        """Return the run of a ritual on a local date."""
        found = await self._read("WHERE key = ? AND day = ?", key, day.isoformat())
        return found[0] if found else None

    async def of_thread(self, thread_uri: str) -> RitualRun | None:
        """Return the run whose thread begins with a post."""
        found = await self._read("WHERE thread_uri = ?", thread_uri)
        return found[0] if found else None

    async def latest(self, key: str, limit: int) -> list[RitualRun]:
        """Return the newest runs of a ritual, the newest first."""
        return await self._read("WHERE key = ? ORDER BY day DESC LIMIT ?", key, limit)

    async def since(self, day: date) -> list[RitualRun]:
        """Return the runs of all rituals on a date and later, oldest first."""
        return await self._read("WHERE day >= ? ORDER BY day, key", day.isoformat())

    async def over_on(self, key: str, day: date) -> frozenset[date]:
        """Return the newest dates on which a ritual was opened, and `day` if its opening was given up then."""

        def read(connection: sqlite3.Connection) -> frozenset[date]:
            runs = _runs(connection, "WHERE key = ? ORDER BY day DESC LIMIT ?", key, RITUAL_HISTORY_MAX)
            given_up = [day] if is_opening_settled(connection, key, day) else []
            return frozenset([*(run.day for run in runs), *given_up])

        return await self.database.run(read)

    async def note_words(self, run: RitualRun, note: str) -> None:
        """Keep the beginning of what we said in a run, where nothing is kept of it yet."""
        await self._write("UPDATE ritual_runs SET note = ? WHERE key = ? AND day = ? AND note = ''", note, run)

    async def note_artefact(self, run: RitualRun, url: str, note: str) -> None:
        """Keep where our artefact stands, and how it begins."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE ritual_runs SET artefact_url = ?, note = ? WHERE key = ? AND day = ?",
                (url, note, run.key, run.day.isoformat()),
            )

        await self.database.run(write)

    async def note_took_part(self, run: RitualRun, dids: Sequence[str]) -> None:
        """Keep who else answered in the thread of a run."""
        told = json.dumps(sorted({*run.took_part, *dids}))
        await self._write("UPDATE ritual_runs SET took_part = ? WHERE key = ? AND day = ?", told, run)

    async def _write(self, statement: str, value: str, run: RitualRun) -> None:
        values = (value, run.key, run.day.isoformat())
        await self.database.run(lambda connection: connection.execute(statement, values))

    async def _read(self, where: str, *values: object) -> list[RitualRun]:
        return await self.database.run(lambda connection: _runs(connection, where, *values))


def is_opening_settled(connection: sqlite3.Connection, key: str, day: date) -> bool:
    """Whether we opened a ritual on a date, or gave it up: by ourselves we do not open it then any more."""
    latest = newest(connection, OPENING_KIND, 1, key_prefix=f"{key}/{day.isoformat()}")
    return any(row.state != "pending" for row in latest)


def all_runs(connection: sqlite3.Connection) -> list[RitualRun]:
    """Return all runs, the newest first."""
    return _runs(connection, "ORDER BY day DESC, key")


def _values(run: RitualRun) -> tuple[Any, ...]:
    return run.key, run.day.isoformat(), run.name, run.role, run.thread_uri, run.opener


def _runs(connection: sqlite3.Connection, where: str, *values: object) -> list[RitualRun]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM ritual_runs {where}", values)  # noqa: S608 - constants
    return [_run(*row) for row in rows]


def _run(key: str, day: str, name: str, role: RunRole, *texts: str) -> RitualRun:
    thread_uri, opener, artefact_url, note, dids = texts
    took_part = tuple(json.loads(dids))
    return RitualRun(key, date.fromisoformat(day), name, role, thread_uri, opener, artefact_url, note, took_part)


RITUALS_OF_PEOPLE = PersonalRows(
    "rituals",
    (
        PersonalTable(
            name="ritual_runs",
            theirs="opener = :did AND role = 'participant'",
            shown="'opened ' || name || ' on ' || day",
            order="day",
            redacts={"took_part": "(SELECT json_group_array(value) FROM json_each(took_part) WHERE value <> :did)"},
            shown_of_others="'took part in ' || key || ' on ' || day",
        ),
    ),
)
"""The runs that a person opened; of others, that they took part."""
