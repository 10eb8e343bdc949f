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
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from common.clock import iso, parse_iso
from common.errors import SoulError
from modules.database import Database
from modules.memory import policy
from modules.memory.profiles import FIELD_LENGTH, VALUE_LENGTH, Subject
from modules.memory.sqlite_rows import COLUMNS, remember, tags_of
from modules.memory.types import KINDS, OWNER_SOURCE, PRIVATE_KINDS, Kind, NewMemory, Trust

VERSION = 1
MARKS = ("commissioned_at",)
"""The marks that travel along: what was settled once and for all."""

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

_Line = TypeVar("_Line", bound=BaseModel)


def _moment(text: str) -> str:
    return iso(parse_iso(text))


Moment: TypeAlias = Annotated[str, AfterValidator(_moment)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class HeadLine(_Strict):
    """The first line: in which form the others are."""

    record: Literal["export"] = "export"
    version: int = Field(le=VERSION)


class MemoryLine(_Strict):
    """One memory, living or replaced; `superseded_by` is an `id` of the same export."""

    record: Literal["memory"] = "memory"
    id: int
    created_at: Moment
    updated_at: Moment
    kind: Kind
    subject: str
    body: str
    tags: list[str] = []
    source: str = "self"
    trust: Trust = "self"
    private: bool = True
    importance: int = Field(default=3, ge=1, le=5)
    last_recalled_at: Moment | None = None
    recall_count: int = Field(default=0, ge=0)
    superseded_by: int | None = None

    @property
    def new(self) -> NewMemory:
        """As it was when it was new. What is private stays so, wherever it comes from."""
        as_told = not self.private or self.kind in PRIVATE_KINDS or self.source.startswith(OWNER_SOURCE)
        return NewMemory(
            self.kind,
            self.subject,
            self.body,
            tuple(self.tags),
            self.importance,
            self.source if as_told else f"{OWNER_SOURCE}{self.source}",
            self.trust,
            shareable=not self.private,
        )


class ProfileLine(_Strict):
    """One field of a profile."""

    record: Literal["profile"] = "profile"
    subject: Subject
    field: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=FIELD_LENGTH)
    value: str = Field(min_length=1, max_length=VALUE_LENGTH)
    updated_at: Moment
    updated_by: str


class MarkLine(_Strict):
    """Something that was settled once."""

    record: Literal["mark"] = "mark"
    name: Literal["commissioned_at"]
    value: str


Line: TypeAlias = HeadLine | MemoryLine | ProfileLine | MarkLine

_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="record")])


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


def parse_lines(lines: Iterable[str]) -> list[Line]:
    """Every line read and checked. Raises `SoulError` naming the first that is wrong."""
    read: list[Line] = []
    numbers: dict[int, int] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = _LINE.validate_json(text)
        except ValidationError as error:
            raise _wrong(number, _problem(error)) from None
        if isinstance(line, MemoryLine):
            if not policy.key(policy.clean(line.body)):
                raise _wrong(number, "body: there is nothing in it")
            if line.id in numbers:
                raise _wrong(number, f"id {line.id} stands on line {numbers[line.id]} already")
            numbers[line.id] = number
        read.append(line)
    for line in _of(read, MemoryLine):
        if line.superseded_by is not None and line.superseded_by not in numbers:
            raise _wrong(numbers[line.id], f"superseded_by {line.superseded_by} is the id of no line")
    return read


def restore(connection: sqlite3.Connection, lines: Sequence[Line]) -> Restored:
    """Take in what `parse_lines` read, inside a transaction of the caller's."""
    memories = sorted(_of(lines, MemoryLine), key=lambda line: (line.created_at, line.id))
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
    profiles = _of(lines, ProfileLine)
    fields = sum(_set_field(connection, line) for line in profiles)
    for mark in _of(lines, MarkLine):
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


def _of(lines: Iterable[Line], kind: type[_Line]) -> list[_Line]:
    return [line for line in lines if isinstance(line, kind)]


def _wrong(number: int, problem: str) -> SoulError:
    return SoulError(f"Line {number}: {problem}", remedy="Nothing was taken in; mend that line and try again.")


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {said}" if where else said
