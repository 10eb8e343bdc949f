"""Proves over generated histories that bringing back writes what was written, and that both stores keep the same.

`HISTORIES` says how many, `HISTORY_SEED` from which seed on; the seed of a history that fails is in the message.
"""

from __future__ import annotations

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
from modules.services.memory.rows import remember
from tests.fresh_database import in_memory
from tests.modules.services.memory.histories import Step
from tests.modules.services.memory.histories import history as generated

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
