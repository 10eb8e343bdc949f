"""The lines of an export: what each may hold, and what is wrong with an invalid one. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from common.clock import iso, parse_iso
from common.errors import SoulError
from common.person import Person
from common.provenance import Trust
from common.settings import complaint
from common.text.handles import named_handles
from modules.services.memory import policy
from modules.services.memory.admission import Kind, NewMemory
from modules.services.memory.profiles import FIELD_LENGTH, STANDING_LENGTH, Subject

VERSION = 1
MARKS = ("commissioned_at",)
"""The marks that are exported: what was settled once and for all."""

_DID = re.compile(r"did:[a-z]+:[A-Za-z0-9._:%-]+")
_Line = TypeVar("_Line", bound=BaseModel)


def _moment(text: str) -> str:
    return iso(parse_iso(text))


Moment: TypeAlias = Annotated[str, AfterValidator(_moment)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class HeadLine(_Strict):
    """The first line: the version of the format."""

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
    dids: list[str] = []
    about: list[str] = []

    @cached_property
    def entry(self) -> policy.MemoryEntry:
        """The memory as a store keeps it. A private memory stays private, wherever it comes from."""
        new = NewMemory(
            self.kind,
            self.subject,
            self.body,
            tuple(self.tags),
            self.importance,
            self.source,
            self.trust,
            shareable=not self.private,
            dids=tuple(self.dids),
            about=tuple(self.about),
        )
        entry = policy.entry(new)
        return replace(entry, private=entry.private or self.private)


class ProfileLine(_Strict):
    """One field of a profile."""

    record: Literal["profile"] = "profile"
    subject: Subject
    field: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=FIELD_LENGTH)
    value: str = Field(min_length=1, max_length=STANDING_LENGTH)
    updated_at: Moment
    updated_by: str


class MarkLine(_Strict):
    """Something that was settled once."""

    record: Literal["mark"] = "mark"
    name: Literal["commissioned_at"]
    value: str


Line: TypeAlias = HeadLine | MemoryLine | ProfileLine | MarkLine

_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="record")])


def parse_lines(lines: Iterable[str]) -> list[Line]:
    """Return every line, read and checked. Raises `SoulError` that names the first invalid one."""
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
    for line in of(read, MemoryLine):
        if line.superseded_by is not None and line.superseded_by not in numbers:
            raise _wrong(numbers[line.id], f"superseded_by {line.superseded_by} is the id of no line")
    return read


def of(lines: Iterable[Line], kind: type[_Line]) -> list[_Line]:
    """Return the lines of one kind, in their order."""
    return [line for line in lines if isinstance(line, kind)]


def people(lines: Iterable[Line]) -> frozenset[str]:
    """Return the DIDs and handles that the memories rest on or name, or that stand in their sources."""
    memories = of(lines, MemoryLine)
    return frozenset(name for line in memories for name in (*line.dids, *_DID.findall(line.source), *_named(line)))


def without_people(lines: Sequence[Line], dids: Collection[str], forgotten: Collection[str]) -> list[Line]:
    """Return the lines without memories that rest on `dids` or name `forgotten`, and without `dids` elsewhere.

    A memory that one of them had replaced stays replaced.
    """
    rests, names = frozenset(dids), frozenset(forgotten)
    memories = of(lines, MemoryLine)
    gone = {line.id for line in memories if not (rests.isdisjoint(line.dids) and names.isdisjoint(_named(line)))}
    return [
        _freed(line, gone, dids) if isinstance(line, MemoryLine) else line
        for line in lines
        if not (isinstance(line, MemoryLine) and line.id in gone)
    ]


def _named(line: MemoryLine) -> frozenset[str]:
    texts = "\n".join((f"@{line.subject}" if line.kind == "person" else line.subject, line.body, *line.tags))
    return frozenset((*line.about, *_DID.findall(texts), *named_handles(texts)))


def _freed(line: MemoryLine, gone: Collection[int], dids: Collection[str]) -> MemoryLine:
    source = line.source
    for did in frozenset(_DID.findall(source)).intersection(dids):
        source = Person(did).without_did(source)
    successor = line.id if line.superseded_by in gone else line.superseded_by
    return line.model_copy(update={"source": source, "superseded_by": successor})


def _wrong(number: int, problem: str) -> SoulError:
    return SoulError(f"Line {number}: {problem}", remedy="Nothing was taken in; mend that line and try again.")


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    return f"{where or 'it'} {complaint(first)}"
