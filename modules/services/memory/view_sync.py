"""Synchronises MEMORY.md and the daily files with memory: edits by hand are imported first, then all is rendered.

Memory is the record, the files are views. After a crash between any two steps the next `sync` does the rest: an import
is not repeated, and the mark that describes the last rendering is written after the file.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Literal

from cachetools import LRUCache

from common.clock import Clock, local, parse_iso
from common.provenance import Provenance, Trust
from common.text.markdown import Heading, in_code, outline, split_at
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.services.memory import policy
from modules.services.memory.admission import Kind, Memory, NewMemory
from modules.services.memory.recall import (
    PROMPT_ENTRIES,
    MemoryRenderer,
    as_told,
    day_name,
    day_span,
    in_file,
    of_day,
    render_day,
    told_in_prompt,
    trusted,
    words_of,
)
from modules.services.memory.rows import MemoryStore
from modules.services.owner_files import OwnerFiles

VIEW = "MEMORY.md"
PREAMBLE = "Before the first heading"
"""The subject of the text above the first heading."""

_UNTITLED = "Untitled"
_LEVEL = 2
_LINE_END = re.compile(r"\r\n?")
_BLANK_START = re.compile(r"\A(?:[^\S\n]*\n|\ufeff)+")
_TRUST_FIRST: tuple[Trust, ...] = ("owner", "self", "peer", "stranger")


@dataclass(frozen=True, slots=True)
class Section:
    """One section: `title` is unique in its view, `text` has no blank lines around it."""

    title: str
    text: str


def parse_view(markdown: str) -> tuple[Section, ...]:
    """Return the sections of a file, in its order."""
    lines = _lines(policy.clean(markdown).lstrip("\ufeff"))
    titles: list[str] = []
    texts: list[str] = []
    for heading, below in split_at(lines, _begins_section):
        titles.append(_title(heading.text) if heading else PREAMBLE)
        marked = zip(below, in_code(below), strict=True)
        texts.append(_tidy("\n".join(line if code else _unescaped(line) for line, code in marked)))
    named = zip([PREAMBLE, *_unique(titles[1:])], texts, strict=True)
    return tuple(Section(title, text) for title, text in named if text or title != PREAMBLE)


def render_view(sections: Iterable[Section]) -> str:
    """Return the text of the file. The same sections give the same bytes."""
    parts: list[str] = []
    for section in sections:
        text = _escaped(_tidy(section.text))
        if section.title == PREAMBLE:
            parts.insert(0, text)
        else:
            parts.append(f"## {section.title}\n\n{text}".rstrip())
    return "\n\n".join(part for part in parts if part) + "\n" if any(parts) else ""


def sections_of(memories: Iterable[Memory], order: Sequence[str] = ()) -> tuple[tuple[Section, Memory], ...]:
    """Return each memory as its section, in the given order of titles, then by age; under one title by trust."""
    places = {policy.key(title): place for place, title in enumerate(order)}

    def place(memory: Memory) -> tuple[bool, int, int, str, int]:
        key = policy.key(_title(memory.subject))
        rank = _TRUST_FIRST.index(memory.trust) if key in places else 0
        return (not _above(memory), places.get(key, len(places)), rank, memory.created_at, memory.id)

    ordered = sorted(memories, key=place)
    above = [memory for memory in ordered if _above(memory)][:1]
    rest = [memory for memory in ordered if memory not in above]
    titles = _unique([_title(memory.subject) for memory in rest])
    named = [*((PREAMBLE, memory) for memory in above), *zip(titles, rest, strict=True)]
    return tuple((Section(title, _told(memory)), memory) for title, memory in named)


def with_heading(section: Section) -> str:
    """Return a body with its own heading, which distinguishes bodies that would count as equal, and empty from none."""
    return f"## {section.title}\n\n{section.text}".rstrip()


def _told(memory: Memory) -> str:
    """Return the text of a body, without its own heading if it begins with one."""
    text = _tidy(memory.body)
    first, _, rest = text.partition("\n")
    return _tidy(rest) if first == f"## {_title(memory.subject)}" else text


def _above(memory: Memory) -> bool:
    return policy.key(memory.subject) == policy.key(PREAMBLE)


def _title(words: str) -> str:
    return " ".join(words.split()) or _UNTITLED


def _unique(titles: Sequence[str]) -> list[str]:
    """Return the titles with a number appended to the later of two that count as equal."""
    reserved = {policy.key(PREAMBLE), *(policy.key(title) for title in titles)}
    used = {policy.key(PREAMBLE)}
    unique: list[str] = []
    for title in titles:
        found = title
        if policy.key(title) in used:
            found = next(_free(title, reserved))
        reserved.add(policy.key(found))
        used.add(policy.key(found))
        unique.append(found)
    return unique


def _free(title: str, taken: set[str]) -> Iterator[str]:
    number = 2
    while True:
        candidate = f"{title} ({number})"
        if policy.key(candidate) not in taken:
            yield candidate
        number += 1


def _lines(text: str) -> list[str]:
    return _LINE_END.sub("\n", text).split("\n")


def _tidy(text: str) -> str:
    return _BLANK_START.sub("", _LINE_END.sub("\n", text)).rstrip()


def _escaped(text: str) -> str:
    lines = text.split("\n")
    marked = zip(lines, in_code(lines), strict=True)
    return "\n".join(line if code or not _meant(line) else f"\\{line}" for line, code in marked)


def _unescaped(line: str) -> str:
    return line[1:] if line.startswith("\\") and _meant(line[1:]) else line


def _meant(line: str) -> bool:
    """Return whether a line outside code, without leading backslashes, would be a heading or open a code block."""
    alone = outline([line.lstrip("\\")])
    return bool(alone.open_fence) or any(not heading.indent and _begins_section(heading) for heading in alone.headings)


def _begins_section(heading: Heading) -> bool:
    return heading.level == _LEVEL and bool(heading.text)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The file as it was last rendered: the hash of all of it, and each section's title and hash in order."""

    sha256: str = ""
    sections: tuple[tuple[str, str], ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(title for title, _ in self.sections)

    def as_json(self) -> str:
        return json.dumps({"sha256": self.sha256, "sections": self.sections})

    @classmethod
    def from_json(cls, text: str) -> Rendered:
        """Return the value that `as_json` wrote."""
        data = json.loads(text)
        return cls(data["sha256"], tuple((title, digest) for title, digest in data["sections"]))


@dataclass(frozen=True, slots=True)
class ViewMerge:
    """The result of a merge: sections to save, each with the memory it replaces; memories to retire or keep."""

    saved: tuple[tuple[Section, Memory | None], ...] = ()
    retired: tuple[Memory, ...] = ()
    kept: tuple[tuple[Section, Memory], ...] = field(default=())


def merge(before: Rendered, written: Sequence[Section], living: Sequence[tuple[Section, Memory]]) -> ViewMerge:
    """Return the changes to memory (`living`) that the edited file (`written`) asks for."""
    base = {policy.key(title): digest for title, digest in before.sections}
    now = {policy.key(section.title): (section, memory) for section, memory in living}
    wanted = {policy.key(section.title): section for section in written}
    saved = {
        key: section
        for key, section in wanted.items()
        if base.get(key) != section_digest(section) and (key not in now or now[key][0] != section)
    }
    retired = tuple(
        memory
        for key, (section, memory) in now.items()
        if key not in wanted and base.get(key) == section_digest(section)
    )
    gone = {memory.id for memory in retired}
    kept = tuple(pair for key, pair in now.items() if key not in saved and pair[1].id not in gone)
    olds = [(section, now[key][1] if key in now else None) for key, section in saved.items()]
    return ViewMerge(tuple(olds), retired, kept)


def missing(merged: ViewMerge, living: Sequence[tuple[Section, Memory]]) -> list[tuple[Section, Memory | None]]:
    """Return what a save did not keep: a store may take two bodies, or two subjects, for the same."""
    sections = {section for section, _ in living}
    ids, texts = {memory.id for _, memory in living}, {section.text for section, _ in living}
    lost: list[tuple[Section, Memory | None]] = [pair for pair in merged.saved if pair[0] not in sections]
    lost += [
        (section, memory) for section, memory in merged.kept if not {memory.id} & ids and section.text not in texts
    ]
    return lost


def rendered(text: str, sections: Iterable[Section]) -> Rendered:
    """Return the description of a file that was just rendered."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Rendered(digest, tuple((section.title, section_digest(section)) for section in sections))


def section_digest(section: Section) -> str:
    """Return the SHA-256 of a section, in hex."""
    return hashlib.sha256(f"{section.title}\n{section.text}".encode()).hexdigest()


FILE_SOURCE = f"file:{VIEW}"

Part = Literal["all", "before", "since"]

_MARK = "memory_view"
_ALL = 1_000_000
_CURATED: tuple[Kind, ...] = ("curated",)
_PASSES = 3
_PAGES_KEPT = 24


@dataclass(frozen=True, slots=True)
class Synced:
    """The edits by hand: titles of imported sections, retired subjects, titles of sections that cannot be kept.

    While sections cannot be kept the file stays as it was edited; `unkept` names them once, and again only when they
    change. `text` is the file as it is now, so that it need not be read again.
    """

    taken_in: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    text: str = field(default="", compare=False)


class _Edited(Exception):
    """Raised if the file was edited since it was read."""


@dataclass(frozen=True, slots=True)
class DayText:
    """A daily view for a prompt, the provenance of its words if they are not ours, and the memories that it shows.

    `part` says which notes of the day it has: all, those from before a talk began, or those since then.
    """

    name: str
    text: str
    provenance: Provenance | None
    ids: tuple[int, ...] = ()
    part: Part = "all"


@dataclass(frozen=True, slots=True)
class _ToldPage:
    """A rendered page: its text, the number of notes, and the notes that it shows."""

    text: str
    count: int
    notes: tuple[Memory, ...]


class MemoryFile:
    """Synchronises MEMORY.md with memory."""

    def __init__(self, *, store: MemoryStore, database: Database, files: OwnerFiles, clock: Clock) -> None:
        self._store = store
        self._database = database
        self._files = files
        self._clock = clock
        self._alone = asyncio.Lock()
        self._unkept: tuple[str, ...] = ()

    async def sync(self) -> Synced:
        """Import what was edited by hand, then render.

        A file that was deleted or emptied is rendered again; that removes nothing from memory.

        Raises:
            PolicyBlocked: the file is not text, or would be too large; it stays as it is.
            StorageError: the disk or the store refuses.
            Transient: the store cannot be reached.

        """
        async with self._alone:
            before = await self._database.run(_before)
            synced = Synced()
            while True:
                text = await self._files.read(VIEW)
                order = before.order
                if text is not None and _sha256(text) != before.sha256:
                    order = tuple(section.title for section in parse_view(text))
                    synced = await self._take_in(before, text)
                    if synced.unkept:
                        return self._told_once(synced, text)
                shown = [section for section, _ in await self._living(order)]
                new = render_view(shown)
                if new == (text or ""):
                    break
                try:
                    await self._files.update(VIEW, _instead_of(text, new))
                    break
                except _Edited:
                    continue
            after = rendered(new, shown)
            if after != before:
                await self._database.run(lambda connection: _remember(connection, after))
            return self._told_once(synced, new)

    def _told_once(self, synced: Synced, text: str) -> Synced:
        told, self._unkept = self._unkept, synced.unkept
        return replace(synced, unkept=() if synced.unkept == told else synced.unkept, text=text)

    async def seen(self) -> tuple[str, bool]:
        """Return the text that `sync` would write, without writing it, and whether the file was edited since the last.

        An edited file is not imported but returned as it is. Errors are those of `sync`.
        """
        before = await self._database.run(_before)
        text = await self._files.read(VIEW)
        if text is not None and _sha256(text) != before.sha256:
            return text, True
        return render_view(section for section, _ in await self._living(before.order)), False

    async def _take_in(self, before: Rendered, text: str) -> Synced:
        merged = merge(before, parse_view(text), await self._living(before.order))
        for memory in merged.retired:
            await self._store.retire(memory.id, self._clock.now())
        pending = list(merged.saved)
        for tried in range(_PASSES):
            if pending:
                await self._save(pending, plain=tried == 0, anew=tried == _PASSES - 1)
            pending = missing(merged, await self._living(before.order))
            if not pending:
                break
        return Synced(
            tuple(section.title for section, _ in merged.saved),
            tuple(memory.subject for memory in merged.retired),
            tuple(section.title for section, _ in pending),
        )

    async def _save(self, sections: Sequence[tuple[Section, Memory | None]], *, plain: bool, anew: bool) -> None:
        """Save the sections; `anew` first retires memories that the store takes for the same."""
        now = self._clock.now()
        pending = list(sections)
        if anew:
            bodies = {policy.key(with_heading(section)) for section, _ in sections}
            rivals = [pair for pair in await self._living(()) if policy.key(pair[1].body) in bodies]
            for _, rival in rivals:
                await self._store.retire(rival.id, now)
            titles = {policy.key(section.title) for section, _ in sections}
            pending += [pair for pair in rivals if policy.key(pair[0].title) not in titles]
        await self._store.save_all([_new(*one, plain=plain) for one in pending], now)

    async def _living(self, order: Sequence[str]) -> tuple[tuple[Section, Memory], ...]:
        curated = await self._store.listed(kinds=_CURATED, limit=_ALL)
        return sections_of((memory for memory in curated if trusted(memory, Provenance.SELF)), order)


class DayFiles:
    """The files `memory/YYYY-MM-DD.md`, with days in one time zone; "" is the machine's.

    A page with the same notes is rendered in the same bytes, including the boundaries around others' words. They were
    drawn after the framed words had been written, and are drawn again as soon as a note differs.
    """

    def __init__(self, *, store: MemoryStore, files: OwnerFiles, clock: Clock, timezone: str = "") -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._timezone = timezone
        self._last_told = LRUCache[tuple[date, Part, Provenance], _ToldPage](_PAGES_KEPT)

    async def sync(self) -> None:
        """Render yesterday and today."""
        for day in self._days():
            await self.write(day)

    async def write(self, day: date) -> None:
        """Render one day if its file differs. Raises `StorageError` or `Transient`."""
        entries = await self._of(day)
        text = render_day(day, entries, timezone=self._timezone, tell=in_file)
        if text != (await self._files.read(day_name(day)) or ""):
            await self._files.write(day_name(day), text)

    async def told(
        self,
        memory_renderer: MemoryRenderer,
        *,
        least: Provenance = Provenance.STRANGER,
        began: datetime | None = None,
    ) -> tuple[DayText, ...]:
        """Return yesterday and today for a prompt of the owner's, without empty ones.

        What rests on words less trusted than `least` is left out, and counted unless it was noted in this talk. What
        was noted before the talk `began` is a separate part.
        """
        texts: list[DayText] = []
        for day in reversed(self._days()):
            for part, noted in _parted(await self._of(day), began):
                kept = [one for one in noted if trusted(one, least)]
                hidden = 0 if part == "since" else len(noted) - len(kept)
                text, shown = told_in_prompt(day, kept, memory_renderer, most=PROMPT_ENTRIES, hidden=hidden)
                count = len(kept) + hidden
                text = self._as_before((day, part, least), _ToldPage(text, count, tuple(map(as_told, shown))))
                if text:
                    ids = tuple(one.id for one in shown)
                    texts.insert(0, DayText(day_name(day), text, words_of(shown), ids, part))
        return tuple(texts)

    def _as_before(self, key: tuple[date, Part, Provenance], page: _ToldPage) -> str:
        """Return the text of a page as it was rendered last, if it has the same notes."""
        before = self._last_told.get(key)
        if before is None or (before.count, before.notes) != (page.count, page.notes):
            self._last_told[key] = page
        return self._last_told[key].text

    def _days(self) -> tuple[date, date]:
        today = local(self._clock.now(), self._timezone).date()
        return today - timedelta(days=1), today

    async def _of(self, day: date) -> list[Memory]:
        since, until = day_span(day, self._timezone)
        found = await self._store.listed(since=since, until=until, limit=_ALL)
        return of_day(day, found, self._timezone)


def _parted(entries: Sequence[Memory], began: datetime | None) -> Iterator[tuple[Part, Sequence[Memory]]]:
    """Yield the notes of a day in parts, split at the time when a talk `began`, the newest part first."""
    if began is None:
        yield "all", entries
        return
    yield "since", [one for one in entries if parse_iso(one.updated_at) >= began]
    yield "before", [one for one in entries if parse_iso(one.updated_at) < began]


def _new(section: Section, old: Memory | None, *, plain: bool) -> NewMemory:
    body = section.text if plain and section.text else with_heading(section)
    if old is None:
        return NewMemory("curated", section.title, body, source=FILE_SOURCE, trust="owner")
    return NewMemory("curated", section.title, body, old.tags, old.importance, FILE_SOURCE, "owner")


def _instead_of(text: str | None, new: str) -> Callable[[str | None], str]:
    def change(there: str | None) -> str:
        if there not in {text, new}:
            raise _Edited
        return new

    return change


def _before(connection: sqlite3.Connection) -> Rendered:
    kept = marks.get(connection, _MARK)
    return Rendered.from_json(kept) if kept else Rendered()


def _remember(connection: sqlite3.Connection, after: Rendered) -> None:
    marks.put(connection, {_MARK: after.as_json()})


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
