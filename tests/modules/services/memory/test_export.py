"""Proves that memory is exported whole, and restored the same, once, and never in part.

Proves over generated histories that a restored memory has the original rows, and then behaves the same.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from common.clock import iso
from common.errors import SoulError
from common.provenance import Trust
from modules.services.memory.admission import KINDS, NewMemory, Query
from modules.services.memory.export import Restored, restore, snapshot_lines
from modules.services.memory.export_lines import parse_lines
from modules.services.memory.profiles import ProfileFields, Profiles
from modules.services.memory.rows import remember
from tests.fresh_database import in_memory
from tests.known_profiles import set_profiles
from tests.modules.services.memory.histories import Step
from tests.modules.services.memory.histories import history as generated
from tests.modules.services.memory.memory_home import MemoryHome, open_memory_home

TIME = "2026-01-05T12:00:00.000Z"
LINE: dict[str, Any] = {
    "record": "memory", "id": 1, "created_at": TIME, "updated_at": TIME, "kind": "fact", "subject": "s", "body": "b"
}  # fmt: skip


@pytest.fixture
async def memory_homes(tmp_path: Path) -> AsyncIterator[tuple[MemoryHome, MemoryHome]]:
    """Yield two homes without memories: one to export from, and one to restore into."""
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(open_memory_home(tmp_path / "old")),
            await stack.enter_async_context(open_memory_home(tmp_path / "new")),
        )


async def lines_of(memory_home: MemoryHome) -> list[str]:
    return await memory_home.database.read(lambda connection: list(snapshot_lines(connection)))


async def take_in(memory_home: MemoryHome, lines: list[str]) -> Restored:
    read = parse_lines(lines)
    return await memory_home.database.run(lambda connection: restore(connection, read))


async def everything(memory_home: MemoryHome) -> list[dict[str, Any]]:
    """Return all exported records, ids included."""
    return [json.loads(line) for line in await lines_of(memory_home)]


async def fill(memory_home: MemoryHome) -> None:
    """Save live, replaced, retired, private and shared memories of all trusts, with counts, and set both profiles."""
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
    lines = await lines_of(old)
    restored = await take_in(new, lines)
    assert await everything(new) == await everything(old)
    assert restored.memories == sum('"memory"' in line for line in lines)
    assert (restored.fields, restored.known) == (2, 0)
    assert await new.store.listed() == await old.store.listed()
    assert [one.body for one in await new.store.search(Query("paints"), new.clock.now())] == ["The owner paints."]
    assert await Profiles(new.database, new.clock).get() == ProfileFields({"name": "Rowan"}, {"name": "Ana"})


async def test_what_was_private_stays_private_wherever_it_came_from(
    memory_homes: tuple[MemoryHome, MemoryHome],
) -> None:
    old, new = memory_homes
    await fill(old)
    (secret,) = await old.store.search(Query("ill"), old.clock.now())
    assert (secret.private, secret.source) == (True, "self")
    await take_in(new, await lines_of(old))
    assert await new.store.search(Query("ill", public_only=True), new.clock.now()) == []
    assert len(await new.store.listed(public_only=True)) == len(await old.store.listed(public_only=True))


async def test_taking_it_in_twice_is_taking_it_in_once(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await fill(old)
    lines = await lines_of(old)
    await take_in(new, lines)
    before = await everything(new)
    again = await take_in(new, lines)
    assert (again.memories, again.fields, again.known) == (0, 0, len(lines) - 2)
    assert await everything(new) == before
    await take_in(old, lines)
    assert await everything(old) == before


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
    await take_in(new, await lines_of(old))
    assert await living(new) == [("Ana", "Paints."), ("Kit", "Mends clocks."), ("Tides", "High at two.")]
    tides = next(memory for memory in await new.store.listed() if memory.subject == "Tides")
    assert {memory.body for memory in await new.store.history(tides.id)} == {"High at one.", "High at two."}


async def test_what_was_replaced_elsewhere_replaces_nothing_here(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await new.save("fact", "Tides", "High at noon.")
    await old.clock.advance(60)
    for body in ("High at one.", "High at two."):
        number = await old.save("fact", "Tides", body)
    await old.store.retire(number, old.clock.now())
    await take_in(new, await lines_of(old))
    assert await living(new) == [("Tides", "High at noon.")]


async def test_a_newer_field_of_a_profile_stays(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    old, new = memory_homes
    await set_profiles(old.database, old.clock, {"name": "Rowan"}, {}, "owner")
    await new.clock.advance(60)
    await set_profiles(new.database, new.clock, {"name": "Reed"}, {}, "owner")
    restored = await take_in(new, await lines_of(old))
    assert restored == Restored(0, 0, 1)
    assert (await Profiles(new.database, new.clock).get()).agent == {"name": "Reed"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"kind": "gossip"}, "kind must be 'fact'"),
        ({"importance": 6}, "importance must be "),
        ({"created_at": "yesterday"}, "created_at "),
        ({"body": " \n"}, "body: there is nothing in it"),
        ({"id": 7}, "id 7 stands on line 1 already"),
        ({"id": 2, "superseded_by": 9}, "superseded_by 9 is the id of no line"),
        ({"colour": "red"}, "colour is unknown"),
        ({"record": "song"}, "song"),
        ({"record": "export", "version": 2}, ""),
    ],
)
async def test_one_wrong_line_is_named_and_nothing_comes_in(
    memory_homes: tuple[MemoryHome, MemoryHome], change: dict[str, Any], problem: str
) -> None:
    lines = [json.dumps(LINE | {"id": 7}), "", json.dumps(LINE | {"id": 8} | change)]
    with pytest.raises(SoulError, match="Line 3: ") as caught:
        await take_in(memory_homes[0], lines)
    assert problem in str(caught.value)
    assert await memory_homes[0].store.count() == 0


@pytest.mark.parametrize("line", ["{", "[]", "null", '"x"', "{}", "\x00"])
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(SoulError, match="Line 2: "):
        parse_lines([json.dumps(LINE), line])


def test_a_line_of_a_mark_that_does_not_travel_is_refused() -> None:
    with pytest.raises(SoulError, match="Line 1: name"):
        parse_lines([json.dumps({"record": "mark", "name": "memory_view", "value": "{}"})])


async def test_words_without_a_subject_stay_beside_those_that_have_one(
    memory_homes: tuple[MemoryHome, MemoryHome],
) -> None:
    old, new = memory_homes
    for subject, trust in (("Tides", "stranger"), ("Tides", "stranger"), ("", "self"), ("Tides", "self")):
        await old.store.save(NewMemory("fact", subject, "High.", trust=cast("Trust", trust)), old.clock.now())
        await old.clock.advance(1)
    assert len(await old.store.listed()) == 2
    await take_in(new, await lines_of(old))
    assert await new.store.listed() == await old.store.listed()


async def test_both_histories_stay_where_two_homes_are_united(memory_homes: tuple[MemoryHome, MemoryHome]) -> None:
    """Memories that come in get new ids, in the order of time, and those that they had replaced still point to them."""
    old, new = memory_homes
    for body in ("High at one.", "High at two.", "High at three."):
        await old.save("fact", "Tides", body)
        await old.clock.advance(60)
    gone = await old.save("fact", "Gone", "Was here.")
    await old.store.retire(gone, old.clock.now())
    await new.save("fact", "Kit", "Mends clocks.")
    await take_in(new, await lines_of(old))
    rows = {memory["body"]: (memory["id"], memory["superseded_by"]) for memory in (await everything(new))[1:]}
    assert rows == {
        "Mends clocks.": (1, None),
        "High at one.": (2, 3),
        "High at two.": (3, 4),
        "High at three.": (4, None),
        "Was here.": (5, 5),
    }


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
    await take_in(new, await lines_of(old))
    (living,) = await new.store.listed()
    assert living.trust == (here if stays == "here" else there)
    assert len(await everything(new)) == 3


COUNT = int(os.environ.get("HISTORIES", "0"))
SEED = int(os.environ.get("HISTORY_SEED", "1"))
_TOGETHER = 8


def emptied(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.executescript(
        "BEGIN; PRAGMA defer_foreign_keys = ON; DELETE FROM memories; DELETE FROM sqlite_sequence; COMMIT;"
    )
    return connection


def live(connection: sqlite3.Connection, steps: list[Step]) -> list[int]:
    """Carry out the steps as the store of a SOUL would; return the ids of what was saved."""
    ids: list[int] = []
    connection.execute("BEGIN")
    for step in steps:
        if step.what == "save" or not ids:
            ids.append(remember(connection, step.new, step.at))
            continue
        number, at = ids[step.number % len(ids)], iso(step.at)
        if step.what == "retire":
            connection.execute(
                "UPDATE memories SET superseded_by = id, updated_at = ? WHERE id = ? AND superseded_by IS NULL",
                (at, number),
            )
        else:
            connection.execute(
                "UPDATE memories SET last_recalled_at = ?, recall_count = recall_count + 1 WHERE id = ?", (at, number)
            )
    connection.execute("COMMIT")
    return ids


def rows(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return every column of every row."""
    return [tuple(row) for row in connection.execute("SELECT * FROM memories ORDER BY id")]


def bring_back(connection: sqlite3.Connection, lines: list[str]) -> Restored:
    connection.execute("BEGIN")
    restored = restore(connection, parse_lines(lines))
    connection.execute("COMMIT")
    return restored


@pytest.mark.slow
def test_whatever_was_remembered_comes_back_as_it_was() -> None:
    """Every row is the same; a second restore adds nothing; the index agrees; later steps have the same effect."""
    old, new = in_memory(), in_memory()
    for seed in range(SEED, SEED + (COUNT or 80)):
        rng = random.Random(seed)
        steps, more = generated(rng), generated(rng)
        live(emptied(old), steps)
        lines = list(snapshot_lines(old))
        restored = bring_back(emptied(new), lines)
        kept = rows(old)
        assert (rows(new), restored.memories) == (kept, len(kept)), seed
        assert bring_back(new, lines).memories == 0, seed
        assert bring_back(old, lines).memories == 0, seed
        assert rows(new) == rows(old) == kept, seed
        later = [replace(step, at=step.at.replace(day=7)) for step in more]
        assert live(old, later) == live(new, later), seed
        assert rows(new) == rows(old), seed
        for connection in (old, new):
            connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")


@pytest.mark.slow
def test_nothing_is_lost_where_two_histories_are_united() -> None:
    """Every row of both homes is there with its date and words, and no two live memories say the same."""
    old, new = in_memory(), in_memory()
    for seed in range(SEED, SEED + (COUNT or 80)):
        rng = random.Random(seed)
        live(emptied(old), generated(rng))
        live(emptied(new), generated(rng))
        lines, before = list(snapshot_lines(old)), [json.loads(line) for line in snapshot_lines(new)][1:]
        bring_back(new, lines)
        after = [json.loads(line) for line in snapshot_lines(new)][1:]
        identities = [_identity(line) for line in after]
        for side in ([json.loads(line) for line in lines][1:], before):
            expected = [_identity(line) for line in side]
            assert all(identities.count(one) >= expected.count(one) for one in expected), seed
        alive = [(one["kind"], one["subject"].casefold(), one["body"].casefold()) for one in after if _lives(one)]
        assert len(alive) == len(set(alive)), seed
        kept = rows(new)
        assert bring_back(new, lines).memories == 0, seed
        assert rows(new) == kept, seed


def _identity(line: dict[str, Any]) -> tuple[str, ...]:
    return line["kind"], line["subject"].casefold(), line["body"].casefold(), line["created_at"]


def _lives(line: dict[str, Any]) -> bool:
    return line["superseded_by"] is None
