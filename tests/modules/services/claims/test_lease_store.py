"""What is claimed is known again after the program was killed, and peers' tools find it in the file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.state import VERSION_KEY
from modules.runtime.database.database import Database
from modules.services.claims.lease_store import FILE, TaskLeases
from modules.services.claims.policy import LEASE, Lease
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
    return TaskLeases(database, folder, CLOCK)


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


async def test_a_lock_is_known_since_it_was_first_seen(database: Database, tmp_path: Path) -> None:
    clock = FakeClock()
    store = TaskLeases(database, tmp_path, clock)
    one, other = "acme/shop:soul/12-task-3-1", "acme/shop:soul/12-task-3-2"
    begun = clock.now()
    assert await store.first_seen([one]) == {one: begun}
    await clock.advance(3600)
    assert await store.first_seen([one, other]) == {one: begun, other: clock.now()}
    await clock.advance(8 * 86_400)
    assert await store.first_seen([one]) == {one: begun}
    assert await store.first_seen([other]) == {other: clock.now()}
