"""Proves that the watcher looks for all that sleep as often as they ask, whatever becomes of one look."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import cast

from adapters.atproto.newest import Newest, NewestReader
from common.clock import FakeClock
from common.result import ApiResult, Ok
from modules.runtime.home import Home
from soul.watch.watcher import Sleeper, Watcher

_NOT = timedelta()


class Reader:
    """Reads `found`; or never comes to an end, where that is None."""

    def __init__(self, found: Newest | None) -> None:
        self.found = found

    async def read(self, before: Newest | None = None) -> ApiResult[Newest]:
        if self.found is None:
            await asyncio.Event().wait()
        return Ok(cast("Newest", self.found))


async def watched(
    folder: Path, readers: dict[str, Reader], seconds: int, *, back: timedelta = timedelta()
) -> list[str]:
    """Who is called within so many seconds, where the clock is set back at the beginning."""
    clock, called = FakeClock(), list[str]()
    watcher = Watcher({}, folder, called.append, clock)
    for name, reader in readers.items():
        one = Sleeper(name, Home.at(folder), cast("NewestReader", reader), Newest("before"), clock.monotonic(), 45.0)
        one.since, one.wake_at = clock.now() + back, clock.now() + back + timedelta(hours=20)
        one.edited = (0, 0, 0)
        watcher.sleepers[name] = one
    watching = asyncio.create_task(watcher.watch())
    for _ in range(seconds):
        await asyncio.sleep(0)
        await clock.advance(1)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    return called


async def test_a_service_that_does_not_answer_keeps_nobody_else_waiting(tmp_path: Path) -> None:
    readers = {"slow": Reader(None), "well": Reader(Newest("after"))}
    assert await watched(tmp_path, readers, 60) == ["well"]


async def test_all_of_many_are_looked_for_in_time(tmp_path: Path) -> None:
    readers = {f"soul-{number}": Reader(Newest("after")) for number in range(150)}
    assert len(await watched(tmp_path, readers, 45 + 150 // 4 + 5)) == 150


async def test_nobody_sleeps_on_where_the_clock_was_set_back(tmp_path: Path) -> None:
    assert await watched(tmp_path, {"rowan": Reader(Newest("before"))}, 3, back=timedelta(days=30)) == ["rowan"]
    assert await watched(tmp_path, {"rowan": Reader(Newest("before"))}, 3) == []


async def test_an_edited_file_of_the_owner_wakes_who_sleeps(tmp_path: Path) -> None:
    (tmp_path / "HEARTBEAT.md").write_text("Look after the roof.")
    assert await watched(tmp_path, {"rowan": Reader(Newest("before"))}, 3) == ["rowan"]
