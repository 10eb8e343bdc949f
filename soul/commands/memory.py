"""`soul memory …`: lets the owner read and delete what the SOUL remembers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from common.clock import SystemClock
from common.errors import UsageError
from common.settings import Settings
from common.text.markdown import as_prose
from common.wording import counted
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.types import Entry
from modules.services.agent.wakeup.context import page, wakeup_file
from modules.services.memory.admission import Kind, Memory, Query
from modules.services.memory.recall import day_span
from modules.services.memory.rows import MemoryStore
from soul.commands.at_hand import at_hand
from soul.commands.beside import journal_beside
from soul.commands.options import Kinds, MemoryKind
from soul.commands.people import forgetting_beside
from soul.terminal.output import printable, write_answer, write_lines
from soul.terminal.wording import moment

T = TypeVar("T")

_BODY_SHOWN = 100


def run_memory_list(
    root: Path,
    *,
    kinds: Kinds = None,
    since: Annotated[str, typer.Option("--since", metavar="DAY", help="Only from this day on, as 2026-01-31.")] = "",
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1)] = 50,
    as_json: bool,
) -> None:
    """Print memories, newest first. Raises `SoulError` for an invalid day."""
    _date(since)
    settings, home = at_hand(root)
    after = _day(since, settings)
    listed = _ask(home, lambda store: store.listed(kinds=_kinds(kinds), since=after, limit=limit))
    _show(listed, settings, as_json=as_json)


def run_memory_search(
    root: Path,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="The words to search for.")],
    *,
    kinds: Kinds = None,
    limit: Annotated[int, typer.Option(help="List at most this many.", min=1, max=20)] = 8,
    as_json: bool,
) -> None:
    """Print the memories that match the words, best first."""
    settings, home = at_hand(root)
    now = SystemClock().now()
    _show(
        _ask(home, lambda store: store.search(Query(" ".join(words), _kinds(kinds), limit=limit), now)),
        settings,
        as_json=as_json,
    )


def run_memory_show(
    root: Path,
    memory_id: Annotated[int, typer.Argument(metavar="ID", help="The number of the memory.")],
    *,
    as_json: bool,
) -> None:
    """Print one memory in full, and all others ever stored about its subject. Raises `UsageError` if there is none."""
    settings, home = at_hand(root)

    async def find(store: MemoryStore) -> tuple[Memory | None, list[Memory]]:
        return await store.get(memory_id), await store.history(memory_id)

    memory, history = _ask(home, find)
    if memory is None:
        raise UsageError(f"There is no memory {memory_id}", remedy="`soul memory list` shows them.")
    others = [f"  {line}" for each in history if each.id != memory.id for line in _whole(each, settings)]
    head = ["", "Under the same subject, newest first:"] if others else []
    shown = {**asdict(memory), "history": [asdict(each) for each in history]}
    write_answer(shown, [*_whole(memory, settings), *head, *others], as_json=as_json)


def run_memory_forget(
    root: Path, memory_id: Annotated[str, typer.Argument(metavar="ID", help="The number of the memory.")]
) -> None:
    """Delete one memory and its copies. Raises `UsageError` if there is none."""
    write_lines(asyncio.run(forget_memory(*at_hand(root), memory_id)))


async def forget_memory(settings: Settings, home: Home, number: str) -> str:
    """Delete one memory and its copies; return a line on it. Raises `UsageError` if there is none."""
    known = int(number) if number.isascii() and number.isdecimal() else 0
    if (gone := await ask_memories(home, lambda store: store.get(known))) is None:
        raise UsageError(f"There is no memory {number}", remedy="`soul memory list` shows them.")
    for main in (True, False):  # the page quotes memories; a SOUL that is awake writes it again when it stops
        page(wakeup_file(home.memory), main=main).unlink(missing_ok=True)
    async with forgetting_beside(settings, home) as forgetting:
        await forgetting.forget_memory(gone)
    summary = f"Memory {number} is forgotten"
    async with journal_beside(settings, home, SystemClock()) as (_, journal):
        await journal.record(Entry("life", "memory", summary, "mem", "you asked for it", data={"memory": known}))
    return f"{summary}; others may tell the same (`soul memory search WORDS` finds them)"


def _ask(home: Home, use: Callable[[MemoryStore], Awaitable[T]]) -> T:
    return asyncio.run(ask_memories(home, use))


async def ask_memories(home: Home, use: Callable[[MemoryStore], Awaitable[T]]) -> T:
    """Return what `use` returns for the memories of a home. Raises `SoulError`."""
    async with await Database.beside(home.database) as database:
        return await use(MemoryStore(database))


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f"{text!r} is no day", remedy="Write it as 2026-01-31.") from None


def _day(text: str, settings: Settings) -> datetime | None:
    """Return the beginning of a day in the SOUL's time zone; None for ""."""
    day = _date(text)
    return day_span(day, settings.soul_timezone)[0] if day else None


def _show(memories: Sequence[Memory], settings: Settings, *, as_json: bool) -> None:
    lines = []
    for memory in memories:
        body, subject = printable(as_prose(memory.body)), as_prose(memory.subject)
        shown = body if len(body) <= _BODY_SHOWN else f"{body[: _BODY_SHOWN - 1]}…"
        when = moment(memory.updated_at, settings.soul_timezone)
        lines.append(f"{memory.id:>6}  {when}  {memory.kind:<10}  {subject}: {shown}")
    found = [asdict(memory) for memory in memories]
    write_answer(found, lines or ["Nothing of that is remembered"], as_json=as_json)


def _whole(memory: Memory, settings: Settings) -> Iterable[str]:
    """Yield the lines that show one memory in full."""
    yield f"[{memory.id}] {memory.kind}: {memory.subject}"
    yield from (f"    {line}" for line in memory.body.splitlines())
    if memory.tags:
        yield f"  tags       {', '.join(memory.tags)}"
    yield f"  importance {memory.importance}, recalled {counted(memory.recall_count, 'time')}"
    told = "only to you" if memory.private else "to anyone"
    yield f"  from       {memory.source} (trust: {memory.trust}), may be told {told}"
    since, said = (moment(at, settings.soul_timezone) for at in (memory.created_at, memory.updated_at))
    yield f"  since      {since}, last said {said}"
    if memory.superseded_by is not None:
        gone = memory.superseded_by == memory.id
        yield "  taken out of memory" if gone else f"  replaced by [{memory.superseded_by}]"


def _kinds(given: Sequence[MemoryKind] | None) -> list[Kind]:
    return [one.value for one in given or ()]
