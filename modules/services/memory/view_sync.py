"""Keeps MEMORY.md and the daily files in step with memory: what a hand wrote is taken in first, then all is rendered.

Memory is the record, the files are views. After a crash between any two steps the next `sync` does the rest: what was
taken in is not taken in again, and the mark that says what the file was last rendered as is written after the file.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Literal

from cachetools import LRUCache

from common.clock import Clock, local, parse_iso
from common.provenance import Provenance
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.services.memory import policy
from modules.services.memory.days import (
    PROMPT_ENTRIES,
    day_name,
    day_span,
    in_file,
    of_day,
    render_day,
    told_in_prompt,
)
from modules.services.memory.recall import MemoryRenderer, as_told, trusted, words_of
from modules.services.memory.store import MemoryStore
from modules.services.memory.types import Kind, Memory, NewMemory
from modules.services.memory.view_merge import Rendered, merge, missing, rendered
from modules.services.memory.views import VIEW, Section, parse_view, render_view, sections_of, with_heading
from modules.services.owner_files import OwnerFiles

FILE_SOURCE = f"file:{VIEW}"

Part = Literal["all", "before", "since"]

_MARK = "memory_view"
_ALL = 1_000_000
_CURATED: tuple[Kind, ...] = ("curated",)
_PASSES = 3
_PAGES_KEPT = 24


@dataclass(frozen=True, slots=True)
class Synced:
    """What a hand had changed: sections taken in, subjects taken out, and sections that could not be kept as they are.

    While sections cannot be kept the file stays as the hand left it; `unkept` names them once, and again only when they
    are others. `text` is the file as it is now: nobody has to read it again.
    """

    taken_in: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    text: str = field(default="", compare=False)


class _Edited(Exception):
    """A hand was faster: the file is no more as it was read."""


@dataclass(frozen=True, slots=True)
class DayText:
    """A daily view for a prompt, whose words it brings in, if they are not ours, and the memories that it shows.

    `part` says which notes of the day it has: all, or those from before a talk began, or those from then on.
    """

    name: str
    text: str
    provenance: Provenance | None
    ids: tuple[int, ...] = ()
    part: Part = "all"


@dataclass(frozen=True, slots=True)
class _ToldPage:
    """A page as it was told: how many notes there were, and those in it."""

    text: str
    count: int
    notes: tuple[Memory, ...]


class MemoryFile:
    """MEMORY.md."""

    def __init__(self, *, store: MemoryStore, database: Database, files: OwnerFiles, clock: Clock) -> None:
        self._store = store
        self._database = database
        self._files = files
        self._clock = clock
        self._alone = asyncio.Lock()
        self._unkept: tuple[str, ...] = ()

    async def sync(self) -> Synced:
        """Take in what a hand changed, then render.

        A file that was taken away or emptied is rendered again: it takes nothing out of memory.

        Raises:
            PolicyBlocked: the file is no text, or would be too large; it stays as it is.
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
        """What a `sync` would make of the file, without making it; and whether a hand changed it since the last one.

        What a hand changed is not taken in: the file is then told as it lies. Errors are those of `sync`.
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
        """Remember them; `anew` after what the store takes for the same was told apart or retired."""
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
    """`memory/YYYY-MM-DD.md`, in the days of one time zone; "" is the machine's own.

    A page that is told again with the same notes is told in the same bytes, the marks around others' words included:
    these were drawn when all that they frame was written already, and are drawn anew as soon as a note is another.
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
        """Render one day, if its file is not what it should be. Raises `StorageError` or `Transient`."""
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
        """Yesterday and today for a prompt of the owner's, without those of which there is nothing to tell.

        What rests on words less trusted than `least` is left out. What was noted before a talk `began` is told apart
        from the rest.
        """
        texts: list[DayText] = []
        for day in reversed(self._days()):
            entries = [one for one in await self._of(day) if trusted(one, least)]
            for part, noted in _parted(entries, began):
                text, shown = told_in_prompt(day, noted, memory_renderer, most=PROMPT_ENTRIES)
                text = self._as_before((day, part, least), _ToldPage(text, len(noted), tuple(map(as_told, shown))))
                if shown:
                    ids = tuple(one.id for one in shown)
                    texts.insert(0, DayText(day_name(day), text, words_of(shown), ids, part))
        return tuple(texts)

    def _as_before(self, key: tuple[date, Part, Provenance], page: _ToldPage) -> str:
        """Return the text of a page as it was told last, if it has the same notes."""
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
    """Yield the notes of a day in the parts in which a talk that `began` then is told them, the newest part first."""
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
