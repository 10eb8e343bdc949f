"""Proves that memory goes out whole, comes back the same, once, and never in part."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from common.errors import SoulError
from common.provenance import Trust
from modules.services.memory.export import Restored, Snapshots, snapshot_lines
from modules.services.memory.export_lines import parse_lines
from modules.services.memory.profiles import ProfileFields, Profiles
from modules.services.memory.types import KINDS, NewMemory, Query
from tests.known_profiles import set_profiles
from tests.modules.services.memory.memory_home import MemoryHome, open_memory_home

TIME = "2026-01-05T12:00:00.000Z"
LINE: dict[str, Any] = {
    "record": "memory", "id": 1, "created_at": TIME, "updated_at": TIME, "kind": "fact", "subject": "s", "body": "b"
}  # fmt: skip


@pytest.fixture
async def memory_homes(tmp_path: Path) -> AsyncIterator[tuple[MemoryHome, MemoryHome]]:
    """A home that has memories, and one that has none."""
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(open_memory_home(tmp_path / "old")),
            await stack.enter_async_context(open_memory_home(tmp_path / "new")),
        )


async def everything(memory_home: MemoryHome) -> list[dict[str, Any]]:
    """All lines, with ids and all."""
    return [json.loads(line) for line in await Snapshots(memory_home.database).snapshot_lines()]


async def fill(memory_home: MemoryHome) -> None:
    """Living, replaced and retired ones, private and shared, of all trusts, counted, and both profiles."""
    await memory_home.save("fact", "Tides", "High at noon.", tags=("sea", "moon"))
    for body in ("High at one.", "High at noon.", "High at two."):
        await memory_home.clock.advance(60)
        await memory_home.save("fact", "Tides", body)
    await memory_home.save("fact", "Tides", "High at nine, kit says.", trust="stranger", source="bluesky:x")
    await memory_home.save("fact", "Secret", "The owner is ill.", source="owner:terminal", trust="stranger")
    await memory_home.save("fact", "Secret", "The owner is ill.")
    await memory_home.save(
        "fact", "Shared", "The owner paints.", source="owner:terminal", trust="owner", shareable=True
    )
    await memory_home.clock.advance(60)
    retired = await memory_home.save("curated", "Gone", "Was here.")
    await memory_home.store.retire(retired, memory_home.clock.now())
    for kind in KINDS:
        await memory_home.save(kind, "Each", f"One {kind}.", trust="owner")
    await memory_home.store.recalled(
        [memory.id for memory in await memory_home.store.listed(limit=3)], memory_home.clock.now()
    )
    await set_profiles(memory_home.database, memory_home.clock, {"name": "Rowan"}, {"name": "Ana"}, "owner")
    await memory_home.database.run(
        lambda rows: rows.execute("INSERT INTO marks VALUES ('commissioned_at', '2026'), ('other', 'x')").rowcount
    )


async def test_all_of_it_comes_back_as_it_was(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await fill(old)
    lines = await Snapshots(old.database).snapshot_lines()
    restored = await Snapshots(new.database).restore(lines)
    assert await everything(new) == await everything(old)
    assert restored.memories == sum('"memory"' in line for line in lines)
    assert (restored.fields, restored.known) == (2, 0)
    assert await new.store.listed() == await old.store.listed()
    assert await new.store.search(Query("ill", public_only=True), new.clock.now()) == []
    again = await Snapshots(new.database).restore(lines)
    assert (again.memories, again.fields, again.known) == (0, 0, len(lines) - 2)
    assert await everything(new) == await everything(old)
    assert [one.body for one in await new.store.search(Query("paints"), new.clock.now())] == ["The owner paints."]
    assert await Profiles(new.database, new.clock).get() == ProfileFields({"name": "Rowan"}, {"name": "Ana"})


async def living(memory_home: MemoryHome) -> list[tuple[str, str]]:
    return sorted((memory.subject, memory.body) for memory in await memory_home.store.listed())


async def test_of_two_under_one_subject_the_newer_one_holds(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await old.save("fact", "Tides", "High at one.")
    await old.save("fact", "Kit", "Mends clocks.")
    await new.clock.advance(60)
    await new.save("fact", "Tides", "High at two.")
    await old.clock.advance(120)
    await old.save("fact", "Ana", "Paints.")
    await new.save("fact", "Ana", "Sings.")
    await Snapshots(new.database).restore(await Snapshots(old.database).snapshot_lines())
    assert await living(new) == [("Ana", "Paints."), ("Kit", "Mends clocks."), ("Tides", "High at two.")]
    tides = next(memory for memory in await new.store.listed() if memory.subject == "Tides")
    assert {memory.body for memory in await new.store.history(tides.id)} == {"High at one.", "High at two."}


async def test_a_newer_field_of_a_profile_stays(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await set_profiles(old.database, old.clock, {"name": "Rowan"}, {}, "owner")
    await new.clock.advance(60)
    await set_profiles(new.database, new.clock, {"name": "Reed"}, {}, "owner")
    restored = await Snapshots(new.database).restore(await Snapshots(old.database).snapshot_lines())
    assert restored == Restored(0, 0, 1)
    assert (await Profiles(new.database, new.clock).get()).agent == {"name": "Reed"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "gossip"}, "kind: Input should be 'fact'"),
        ({"created_at": "yesterday"}, "created_at: "),
        ({"body": " \n"}, "body: there is nothing in it"),
        ({"id": 7}, "id 7 stands on line 1 already"),
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"record": "export", "version": 2}, ""),
    ],
)
async def test_one_wrong_line_is_named_and_nothing_comes_in(
    memory_homes: tuple[MemoryHome, MemoryHome], change: dict[str, Any], problem: str
) -> None:
    lines = [json.dumps(LINE | {"id": 7}), "", json.dumps(LINE | {"id": 8} | change)]
    with pytest.raises(SoulError, match="Line 3: ") as caught:
        await Snapshots(memory_homes[0].database).restore(lines)
    assert problem in str(caught.value)
    assert await memory_homes[0].store.count() == 0


@pytest.mark.parametrize("line", ["{", "[]", "{}"])
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(SoulError, match="Line 2: "):
        parse_lines([json.dumps(LINE), line])


def test_a_line_of_a_mark_that_does_not_travel_is_refused() -> None:
    with pytest.raises(SoulError, match="Line 1: name"):
        parse_lines([json.dumps({"record": "mark", "name": "memory_view", "value": "{}"})])


@pytest.mark.parametrize(
    ("here", "there", "stays"),
    [("self", "self", "newer"), ("owner", "stranger", "here"), ("stranger", "owner", "there")],
)
async def test_the_same_words_from_two_homes_live_once_in_the_more_trusted_form(
    memory_homes: tuple[MemoryHome, MemoryHome], here: Trust, there: Trust, stays: str
) -> None:
    old, new = memory_homes
    await new.save("episode", "", "It rained.", trust=here)
    await old.clock.advance(60)
    await old.save("episode", "", "It rained.", trust=there)
    await Snapshots(new.database).restore(await Snapshots(old.database).snapshot_lines())
    (living,) = await new.store.listed()
    assert living.trust == (here if stays == "here" else there)
    assert len(await everything(new)) == 3


@pytest.mark.slow
async def test_nobody_who_saves_waits_for_a_snapshot_and_it_is_of_one_moment(
    memory_homes: tuple[MemoryHome, MemoryHome],
) -> None:
    old, _ = memory_homes
    now, count = old.clock.now(), 3000
    await old.store.save_all([NewMemory("episode", "", f"day {number}") for number in range(count)], now)
    begun, saved = threading.Event(), threading.Event()

    def take(rows: sqlite3.Connection) -> list[str]:
        lines = snapshot_lines(rows)
        taken = list(islice(lines, count // 2))
        begun.set()
        assert saved.wait(10), "the one who saves is kept waiting"
        return [*taken, *lines]

    taking = asyncio.create_task(old.database.read(take))
    await asyncio.to_thread(begun.wait, 10)
    await old.store.save(NewMemory("episode", "", "meanwhile"), now)
    saved.set()
    assert len(await taking) == count + 1
    assert len(await Snapshots(old.database).snapshot_lines()) == count + 2
