"""Memory as lines of JSON: to look at, to carry to another home, and to start again from when the database was lost.

Everything is in it, what was replaced included, with its times and counters. Restoring is one transaction, and doing
it twice is doing it once: what is there already stays as it is, and of two under one subject the newer one holds.
Reading all of it may take seconds, on a connection of its own: nobody who saves meanwhile waits for it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from common.clock import parse_iso
from modules.database import Database
from modules.memory import policy
from modules.memory.export_lines import MARKS, VERSION, Line, MarkLine, MemoryLine, ProfileLine, of, parse_lines
from modules.memory.sqlite_rows import COLUMNS, remember, tags_of
from modules.memory.types import KINDS

_PAGE = 200
_BREATH_S = 0.0005
_STATE = (
    "SELECT coalesce(max(id), 0) FROM memories",
    "SELECT count(*) FROM memories WHERE superseded_by IS NULL",
    *(
        f"SELECT coalesce(max(updated_at), '') FROM memories"  # noqa: S608 - constants
        f" WHERE superseded_by IS NULL AND kind = '{kind}' AND private = {private}"
        for kind in KINDS
        for private in (0, 1)
    ),
)
_FIELDS = "SELECT subject, field, value, updated_at, updated_by FROM profiles ORDER BY rowid"
_KEPT_MARKS = "SELECT name, value FROM marks WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name"


@dataclass(frozen=True, slots=True)
class Restored:
    """How many memories and fields of profiles came in, and how many were there already."""

    memories: int = 0
    fields: int = 0
    known: int = 0


class Snapshots:
    """What goes out of the database and comes back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def snapshot_lines(self) -> list[str]:
        """All of it, as of one moment."""
        return await self._database.read(lambda connection: list(snapshot_lines(connection)))

    async def state(self) -> str:
        """A digest that is another one once something was saved, said again, retired or restored.

        It is found at a glance, and so knows nothing of the counters of what was recalled.
        """
        return await self._database.read(_state)

    async def restore(self, lines: Iterable[str]) -> Restored:
        """Take all of it in, or none. Raises `SoulError` naming the line that is wrong."""
        read = parse_lines(lines)
        return await self._database.run(lambda connection: restore(connection, read))


def snapshot_lines(connection: sqlite3.Connection) -> Iterator[str]:
    """One line of JSON each, without line ends, oldest first."""
    yield _json({"record": "export", "version": VERSION})
    rows = connection.execute(f"SELECT {COLUMNS} FROM memories ORDER BY created_at, id")  # noqa: S608 - our own names
    while page := rows.fetchmany(_PAGE):
        for row in page:
            memory = dict(row)
            memory |= {"tags": tags_of(row), "private": bool(row["private"])}
            yield _json({"record": "memory"} | memory)
        # NOTE(self): a thread that only computes is slow to let the others have their turn.
        time.sleep(_BREATH_S)
    yield from (_json({"record": "profile", **dict(row)}) for row in connection.execute(_FIELDS))
    yield from (_json({"record": "mark", **dict(row)}) for row in _marks(connection))


def _json(line: Mapping[str, object]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _marks(connection: sqlite3.Connection) -> sqlite3.Cursor:
    return connection.execute(_KEPT_MARKS, (json.dumps(MARKS),))


def _state(connection: sqlite3.Connection) -> str:
    known = [connection.execute(question).fetchone()[0] for question in _STATE]
    rest = [list(row) for row in (*connection.execute(_FIELDS), *_marks(connection))]
    return hashlib.sha256(_json({"memories": known, "rest": rest}).encode()).hexdigest()


def restore(connection: sqlite3.Connection, lines: Sequence[Line]) -> Restored:
    """Take in what `parse_lines` read, inside a transaction of the caller's."""
    memories = sorted(of(lines, MemoryLine), key=lambda line: (line.created_at, line.id))
    ids: dict[int, int] = {}
    newcomers: set[int] = set()
    overruled: dict[int, int] = {}
    for line in memories:
        ids[line.id], is_new = _take_in(connection, line)
        if is_new:
            newcomers.add(ids[line.id])
            overruled |= _put_back(connection, line, ids[line.id], newcomers)
    for line in memories:
        if ids[line.id] in newcomers:
            successor = None if line.superseded_by is None else ids[line.superseded_by]
            _settle(connection, line, ids[line.id], overruled.get(ids[line.id], successor))
    profiles = of(lines, ProfileLine)
    fields = sum(_set_field(connection, line) for line in profiles)
    for mark in of(lines, MarkLine):
        connection.execute("INSERT OR IGNORE INTO marks (name, value) VALUES (?, ?)", (mark.name, mark.value))
    return Restored(len(newcomers), fields, len(memories) - len(newcomers) + len(profiles) - fields)


def _take_in(connection: sqlite3.Connection, line: MemoryLine) -> tuple[int, bool]:
    """The id that a line has here, and whether it is new."""
    entry = policy.entry(line.new)
    there = connection.execute(
        "SELECT id FROM memories WHERE kind = ? AND subject_key = ? AND body = ? AND created_at = ?",
        (entry.kind, entry.subject_key, entry.body, line.created_at),
    ).fetchone()
    if there:
        return int(there["id"]), False
    last = connection.execute("SELECT coalesce(max(id), 0) FROM memories").fetchone()[0]
    number = remember(connection, line.new, parse_iso(line.created_at))
    return number, number > last


def _put_back(connection: sqlite3.Connection, line: MemoryLine, number: int, newcomers: set[int]) -> dict[int, int]:
    """Of what the newcomer took the place of, what should have kept it; what then takes the newcomer's, if anything."""
    overruled: dict[int, int] = {}
    entry = policy.entry(line.new)
    rows = connection.execute(
        "SELECT id, updated_at FROM memories WHERE kind = ? AND subject_key = ? AND superseded_by = ?",
        (entry.kind, entry.subject_key, number),
    )
    for row in rows.fetchall():
        replaced = line.superseded_by is not None
        if row["id"] not in newcomers and (replaced or row["updated_at"] > line.updated_at):
            connection.execute("UPDATE memories SET superseded_by = NULL WHERE id = ?", (row["id"],))
            overruled |= {} if replaced else {number: row["id"]}
    return overruled


def _settle(connection: sqlite3.Connection, line: MemoryLine, number: int, successor: int | None) -> None:
    connection.execute(
        "UPDATE memories SET updated_at = ?, source = ?, last_recalled_at = ?, recall_count = ?, superseded_by = ?"
        " WHERE id = ?",
        (line.updated_at, line.source, line.last_recalled_at, line.recall_count, successor, number),
    )


def _set_field(connection: sqlite3.Connection, line: ProfileLine) -> bool:
    """Whether the field was not there, or said something older."""
    changed = connection.execute(
        "INSERT INTO profiles (subject, field, value, updated_at, updated_by) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (subject, field) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,"
        " updated_by = excluded.updated_by WHERE excluded.updated_at > profiles.updated_at",
        (line.subject, line.field, line.value, line.updated_at, line.updated_by),
    )
    return changed.rowcount > 0
