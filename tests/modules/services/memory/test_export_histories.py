"""Proves over generated histories that bringing back writes what was written, and that both stores keep the same.

`HISTORIES` says how many, `HISTORY_SEED` from which seed on; the seed of a history that fails is in the message.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
from dataclasses import replace
from typing import Any

import pytest

from common.clock import iso
from modules.services.memory.export import Restored, restore, snapshot_lines
from modules.services.memory.export_lines import parse_lines
from modules.services.memory.sqlite_rows import COLUMNS, history, memory_of, newest, remember
from modules.services.memory.types import Memory, MemoryStore
from tests.fresh_database import in_memory
from tests.modules.services.memory.histories import Step
from tests.modules.services.memory.histories import history as generated
from tests.modules.services.memory.memory_places import postgres_place

COUNT = int(os.environ.get("HISTORIES", "0"))
SEED = int(os.environ.get("HISTORY_SEED", "1"))
_TOGETHER = 8


def emptied(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.executescript(
        "BEGIN; PRAGMA defer_foreign_keys = ON; DELETE FROM memories; DELETE FROM sqlite_sequence; COMMIT;"
    )
    return connection


def live(connection: sqlite3.Connection, steps: list[Step]) -> list[int]:
    """What the store of a SOUL would do; the ids of what was saved."""
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
    """Every column of every row."""
    return [tuple(row) for row in connection.execute("SELECT * FROM memories ORDER BY id")]


def bring_back(connection: sqlite3.Connection, lines: list[str]) -> Restored:
    connection.execute("BEGIN")
    restored = restore(connection, parse_lines(lines))
    connection.execute("COMMIT")
    return restored


@pytest.mark.slow
def test_whatever_was_remembered_comes_back_as_it_was() -> None:
    """Every column of every row; twice is once; the index agrees; and it goes on as if nothing had been."""
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
    """Of both homes every row is there with its dates and words, and of one subject no more live than before."""
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


@pytest.mark.slow
async def test_both_stores_make_the_same_of_a_history(postgres_url: str) -> None:
    """What lives, in which words, with which dates and counts, and what stood there before."""
    connection = in_memory()
    gate = asyncio.Semaphore(_TOGETHER)

    async def one(seed: int) -> None:
        steps = generated(random.Random(seed))
        async with gate, postgres_place(postgres_url, f"history-{seed}") as store:
            ids = await _live_on_server(store, steps)
            there = [await store.history(number) for number in ids], await store.listed()
        ours = live(emptied(connection), steps)
        assert len(set(ours)) == len(set(ids)), seed
        here = (
            [history(connection, number) for number in ours],
            newest(connection, kinds=(), since=None, public_only=False, limit=1000),
        )
        assert _plain(*there) == _plain(*here), seed

    seeds = range(SEED, SEED + (COUNT or 24))
    for first in range(0, len(seeds), 200):
        await asyncio.gather(*map(one, seeds[first : first + 200]))


async def _live_on_server(store: MemoryStore, steps: list[Step]) -> list[int]:
    ids: list[int] = []
    for step in steps:
        if step.what == "save" or not ids:
            ids.append(await store.save(step.new, step.at))
        elif step.what == "retire":
            await store.retire(ids[step.number % len(ids)], step.at)
        else:
            await store.recalled([ids[step.number % len(ids)]], step.at)
    return ids


def _plain(histories: list[list[Memory]], living: list[Memory]) -> tuple[list[list[Memory]], list[Memory]]:
    """The same with ids counted from one: a server that many share gives out its ids to all of them."""
    all_ids = sorted({memory.id for memories in (*histories, living) for memory in memories})
    places = {number: place for place, number in enumerate(all_ids, 1)}

    def renumbered(memory: Memory) -> Memory:
        successor = memory.superseded_by
        return replace(
            memory, id=places[memory.id], superseded_by=None if successor is None else places.get(successor, 0)
        )

    return [[renumbered(one) for one in memories] for memories in histories], [renumbered(one) for one in living]


def test_a_row_says_all_of_itself() -> None:
    """What an export holds is what a memory holds, and no column of the table is forgotten."""
    connection = in_memory()
    live(connection, generated(random.Random(1)))
    row = connection.execute(f"SELECT {COLUMNS} FROM memories").fetchone()  # noqa: S608 - our own names
    derived = {"subject_key", "body_hash", "shelf"}
    columns = {column[1] for column in connection.execute("PRAGMA table_info(memories)")}
    assert columns - derived == set(dict(row)) == {*json.loads(list(snapshot_lines(connection))[1])} - {"record"}
    assert memory_of(row).id == row["id"]
