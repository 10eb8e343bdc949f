"""Memories are saved while the process is killed again and again: each returned save is there, and none is partial."""

import asyncio
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from modules.services.memory.admission import Query
from modules.services.memory.rows import MemoryStore
from tests.crash.crash_rig import Nursery, kill, nursing
from tests.crash.memory_child import NOW, TOGETHER
from tests.fresh_database import open_database

KILLS = int(os.environ.get("CRASH_KILLS", "100"))
SEED = int(os.environ.get("CRASH_SEED", "1"))
Kept = dict[str, int]


@pytest.mark.crash
@pytest.mark.timeout(60 + KILLS * 5)
async def test_every_memory_that_was_kept_is_there_after_a_kill_and_none_by_half(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    path = tmp_path / "soul.db"
    kept: Kept = {}
    async with nursing("tests.crash.memory_child", str(path)) as nursery:
        for life in range(KILLS):
            await _live_and_die(nursery, life, rng, kept)
            if path.exists():
                _assert_whole(path)
        database = await open_database(path)
        await _assert_found(MemoryStore(database), kept, rng)
        await database.close()
    rows = _assert_whole(path)
    assert rows >= len(kept)
    sys.stdout.write(f"\n{KILLS} SIGKILLs; {len(kept)} memories kept, 0 lost, {rows} rows, seed {SEED}\n")


async def _live_and_die(nursery: Nursery, life: int, rng: random.Random, kept: Kept) -> None:
    """Run one life and kill it, early or after some saves; record each save that has returned."""
    pid = await nursery.birth(str(life))
    spared, delay_s = rng.randrange(40), rng.uniform(0, 0.05)
    striker: asyncio.TimerHandle | None = None
    while True:
        if striker is None and (spared <= 0 or life % 4 == 0):
            striker = asyncio.get_running_loop().call_later(delay_s, kill, pid)
        word, *rest = (await nursery.receive()).split()
        if word == "ended":
            assert rest == [f"-{signal.SIGKILL:d}"]
            break
        kept[" ".join(rest[1:])] = int(rest[0])
        spared -= 1


def _assert_whole(path: Path) -> int:
    """Check that the file, its index and every group in it are whole; return the number of rows."""
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories_fts'").fetchone():
            return 0  # killed before it had made its tables
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
        bodies = [row[0] for row in connection.execute("SELECT body FROM memories")]
        groups = Counter(body.rpartition(" ")[0] for body in bodies if body.startswith("together"))
        assert set(groups.values()) <= {TOGETHER}
        counters = connection.execute(
            "SELECT count(*), coalesce(sum(superseded_by IS NULL), 0) FROM memories WHERE subject = 'the counter'"
        ).fetchone()
        assert counters[1] == min(1, counters[0])
        return len(bodies)


async def _assert_found(store: MemoryStore, kept: Kept, rng: random.Random) -> None:
    """Check that each stored memory has the id that was reported, and that a search finds it."""
    for body, memory_id in kept.items():
        memory = await store.get(memory_id)
        assert memory is not None
        assert memory.body == body
    living = [body for body in kept if not body.startswith("counted")]
    for body in rng.sample(living, min(50, len(living))):
        assert body in [memory.body for memory in await store.search(Query(body), NOW)]
