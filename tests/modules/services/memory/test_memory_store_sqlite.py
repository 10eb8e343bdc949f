"""Proves what only SQLite's store has: one transaction with other rows, an index that never drifts, bounded work."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modules.services.memory import policy
from modules.services.memory.admission import KINDS, NewMemory, Query
from modules.services.memory.rows import MemoryStore, remember, search
from tests.exploration import examples
from tests.fresh_database import in_memory, open_database

NOW = datetime(2026, 1, 5, tzinfo=UTC)
WORDS = st.lists(st.sampled_from(["tea", "pier", "Ada", "rain", "boat"]), min_size=1, max_size=3).map(" ".join)
MEMORIES = st.builds(
    NewMemory,
    st.sampled_from(KINDS),
    st.one_of(st.just(""), WORDS),
    WORDS,
    st.lists(WORDS, max_size=2).map(tuple),
    st.integers(1, 5),
    st.sampled_from(["self", "owner:terminal"]),
    st.sampled_from(["stranger", "peer", "self", "owner"]),
)


async def test_what_is_remembered_in_a_transaction_that_fails_was_never_there(tmp_path: Path) -> None:
    database = await open_database(tmp_path / "soul.db")
    try:
        store = MemoryStore(database)
        kept = await store.save(NewMemory("fact", "tea", "tea is green"), NOW)

        def fail(connection: sqlite3.Connection) -> None:
            remember(connection, NewMemory("fact", "tea", "tea is black"), NOW)
            raise LookupError

        with pytest.raises(LookupError):
            await database.run(fail)
        assert [memory.id for memory in await store.search(Query("tea black"), NOW)] == [kept]
        assert await store.count() == 1
    finally:
        await database.close()


@given(st.lists(st.one_of(MEMORIES, st.integers(1, 12)), max_size=12))
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_the_index_knows_the_living_and_nobody_else(steps: list[NewMemory | int]) -> None:
    with closing(in_memory()) as rows:
        for step in steps:
            if isinstance(step, NewMemory):
                remember(rows, step, NOW)
            else:
                rows.execute("UPDATE memories SET superseded_by = id WHERE id = ? AND superseded_by IS NULL", (step,))
        rows.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
        for word in ("tea", "pier"):
            listed = rows.execute(
                "SELECT id FROM memories WHERE superseded_by IS NULL"
                " AND lower(subject || ' ' || body || ' ' || tags) LIKE ?",
                (f"%{word}%",),
            )
            found = rows.execute("SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", (word,))
            assert {row[0] for row in found} == {row[0] for row in listed}


@given(st.lists(MEMORIES, min_size=1, max_size=10))
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_what_is_private_is_never_found_in_public(memories: list[NewMemory]) -> None:
    with closing(in_memory()) as rows:
        for new in memories:
            remember(rows, new, NOW)
        for text in ("", "tea pier ada rain boat"):
            assert not any(memory.private for memory in search(rows, Query(text, limit=20, public_only=True), NOW))


def _filled(rows: sqlite3.Connection, count: int, body: Callable[[int], str]) -> None:
    rows.execute("BEGIN")
    for number in range(count):
        remember(rows, NewMemory("episode", "", body(number)), NOW - timedelta(days=count - number))
    rows.execute("COMMIT")


def test_words_that_everybody_has_are_weighed_for_a_few_only() -> None:
    with closing(in_memory()) as rows:
        _filled(rows, 3 * policy.FEW, lambda number: f"every entry has these words {number}")
        asked: list[str] = []
        rows.set_trace_callback(asked.append)
        found = search(rows, Query("these words every entry has"), NOW)
        assert [memory.body.split()[-1] for memory in found[:2]] == ["1199", "1198"]
        assert not any("bm25" in statement for statement in asked)


@pytest.mark.parametrize(("asked", "expected"), [("shine", ["999", "998"]), ("rain", ["499", "498"])])
def test_common_words_are_sought_in_the_distance_only_if_none_is_near(asked: str, expected: list[str]) -> None:
    with closing(in_memory()) as rows:
        _filled(rows, 1000, lambda number: f"{'rain' if number < 500 else 'shine'} on day {number}")
        found = search(rows, Query(asked, limit=2), NOW, far=100)
        assert [memory.body.split()[-1] for memory in found] == expected


@pytest.mark.parametrize(("others", "public_only"), [(10, True), (3 * policy.NEWEST, False)])
def test_the_few_of_a_common_kind_that_have_both_words_are_found_behind_others(
    others: int,
    public_only: bool,  # noqa: FBT001 - a column of the table
) -> None:
    with closing(in_memory()) as rows:
        rows.execute("BEGIN")
        for number in range(3):
            remember(rows, NewMemory("lesson", "", f"rain boat {number}"), NOW)
        for number in range(2 * policy.FEW):
            remember(rows, NewMemory("lesson", "", f"{'rain' if number % 2 else 'boat'} alone {number}"), NOW)
        for number in range(others):
            remember(rows, NewMemory("episode", "", f"boat rain {number}"), NOW)
        rows.execute("COMMIT")
        found = search(rows, Query("rain boat", kinds=["lesson"], public_only=public_only, limit=4), NOW)
        assert [memory.body for memory in found[:3]] == ["rain boat 2", "rain boat 1", "rain boat 0"]
        assert found[3].body in {f"rain alone {2 * policy.FEW - 1}", f"boat alone {2 * policy.FEW - 2}"}
