"""What is claimed is known again after the program was killed, and peers' tools find it in the file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.state import VERSION_KEY
from modules.runtime.database.database import Database
from modules.services.claims.claims import LEASE
from modules.services.claims.lease_store import FILE, TaskLeases
from modules.services.claims.leases import Lease
from tests.fresh_database import open_database

CLOCK = FakeClock()
NOW = CLOCK.now()
KEY = "acme/shop#12/task-3"
CLAIMING = Lease(
    *("acme", "shop", 12, 3, "sh-marvin", "claiming", 1), has_lock=False, since=NOW, renewed_at=NOW, until=NOW + LEASE
)
HELD = replace(CLAIMING, number=4, stage="held", has_lock=True, comment_id=9)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path / "soul.db")
    yield opened
    await opened.close()


def _store(database: Database, folder: Path) -> TaskLeases:
    return TaskLeases(database, folder, CLOCK, "sh-marvin")


def _view(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / FILE).read_text(encoding="utf-8")))


async def test_a_task_is_claimed_once_at_a_time_and_again_after_it_was_given_back(
    database: Database, tmp_path: Path
) -> None:
    store = _store(database, tmp_path)
    assert await store.begin(CLAIMING)
    assert not await store.begin(replace(CLAIMING, epoch=2))
    assert await store.all() == [CLAIMING]
    assert _view(tmp_path)[KEY] == int(NOW.timestamp() * 1000)
    await store.end(CLAIMING)
    assert _view(tmp_path).keys() == {VERSION_KEY}
    assert await store.begin(CLAIMING)


async def test_after_a_kill_what_was_won_goes_on_and_what_was_not_is_undone(database: Database, tmp_path: Path) -> None:
    store = _store(database, tmp_path)
    await store.begin(CLAIMING)
    await store.begin(replace(HELD, stage="claiming"))
    await store.put(HELD)
    again = await open_database(tmp_path / "soul.db")
    assert await _store(again, tmp_path).load() == [replace(CLAIMING, stage="ending"), HELD]
    await again.close()


async def test_the_file_of_another_program_is_taken_over(database: Database, tmp_path: Path) -> None:
    since = NOW - timedelta(minutes=10)
    told = {
        VERSION_KEY: "0.0.1",
        KEY: int(since.timestamp() * 1000),
        "_note": 1,
        "acme/shop": 5,
        "acme/shop#1/task-1": "x",
    }
    (tmp_path / FILE).write_text(json.dumps(told), encoding="utf-8")
    store = _store(database, tmp_path)
    (lease,) = await store.load()
    assert (lease.number, lease.stage, lease.epoch, lease.since, lease.until) == (3, "held", 0, since, since + LEASE)
    assert _view(tmp_path).keys() == {KEY, VERSION_KEY}
    assert store.notice == ""


async def test_a_file_that_cannot_be_read_is_set_aside_and_nothing_is_lost(database: Database, tmp_path: Path) -> None:
    store = _store(database, tmp_path)
    await store.begin(HELD)
    (tmp_path / FILE).write_text("{", encoding="utf-8")
    assert await store.load() == [HELD]
    assert "kept as claimed_tasks.json.corrupt-" in store.notice
    assert len(_view(tmp_path)) == 2


async def test_a_lock_is_known_since_it_was_first_seen(database: Database, tmp_path: Path) -> None:
    clock = FakeClock()
    store = TaskLeases(database, tmp_path, clock, "sh-marvin")
    one, other = "acme/shop:soul/12-task-3-1", "acme/shop:soul/12-task-3-2"
    begun = clock.now()
    assert await store.first_seen([one]) == {one: begun}
    await clock.advance(3600)
    assert await store.first_seen([one, other]) == {one: begun, other: clock.now()}
    await clock.advance(8 * 86_400)
    assert await store.first_seen([one]) == {one: begun}
    assert await store.first_seen([other]) == {other: clock.now()}
