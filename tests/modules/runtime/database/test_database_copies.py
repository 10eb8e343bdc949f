"""Proves that a lost database costs only what came since its last copy and is reported; a failed copy costs nothing."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.errors import ConfigError, DiskFull
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.daily_copy import DailyCopy
from modules.runtime.database import copies, marks
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry

START = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass
class Life:
    """An open database, and what copies it each day."""

    path: Path
    clock: FakeClock
    database: Database
    console: SilentConsole
    daily: DailyCopy

    async def note(self, what: str) -> None:
        await self.daily.journal.record(Entry("life", "test", what))

    async def noted(self) -> list[str]:
        recent = await self.daily.journal.recent(100)
        return sorted(stored.entry.summary for stored in recent if stored.entry.loop == "test")

    async def put_mark(self, name: str, value: str) -> None:
        await self.database.run(lambda rows: rows.execute("INSERT INTO marks VALUES (?, ?)", (name, value)).rowcount)

    def days(self) -> list[str]:
        return [path.stem.removeprefix("soul-2026-01-") for path in copies.newest_first(self.path)]


@contextlib.asynccontextmanager
async def life(folder: Path, *, day: int = 0, timezone: str = "UTC") -> AsyncIterator[Life]:
    path, clock, console = folder / "soul.db", FakeClock(START + timedelta(days=day)), SilentConsole()
    database = await Database.open(path, MIGRATIONS)
    try:
        daily = DailyCopy(database, path, Journal(database, console, clock, Redactor()), clock, timezone)
        yield Life(path, clock, database, console, daily)
    finally:
        await database.close()


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


async def live(folder: Path, *days: int) -> None:
    """Let a life note the number of each day and be copied then; its last note is in no copy."""
    for day in days:
        async with life(folder, day=day) as now:
            await now.note(f"day {day}")
            await now.daily.write()
            await now.note(f"day {day}, later")


def dying_disk(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for offset in range(4096, size, 8192):
            file.seek(offset)
            file.write(b"\xa5" * 4096)


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def no_tables(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize("lose", [dying_disk, missing, empty, no_tables])
async def test_the_copy_takes_the_place_of_a_lost_database_and_one_line_tells_of_it(
    tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    await live(tmp_path, 0)
    lose(tmp_path / "soul.db")
    async with life(tmp_path, day=1) as after:
        assert await after.noted() == ["day 0"]
        notice = after.database.notice
        assert "copies/soul-2026-01-05.db" in notice
        assert "\n" not in notice
        assert all(path.name in notice for path in files(tmp_path, "soul.db.corrupt-*"))
        assert stat.S_IMODE(after.path.stat().st_mode) == 0o600
        await after.note("day 1")
    async with life(tmp_path, day=1) as later:
        assert later.database.notice == ""
        assert await later.noted() == ["day 0", "day 1"]


async def test_every_table_comes_back(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.note("day 0")
        await before.daily.write()
        whole = await before.database.run(lambda rows: list(rows.iterdump()))
    dying_disk(tmp_path / "soul.db")
    async with life(tmp_path) as after:
        back = await after.database.run(lambda rows: list(rows.iterdump()))
        assert [line for line in back if marks.RESTORED not in line] == whole


async def test_a_copy_that_cannot_be_used_is_skipped_and_without_any_a_new_life_begins_and_says_so(
    tmp_path: Path,
) -> None:
    await live(tmp_path, 0, 1, 2)
    newest, second, third = copies.newest_first(tmp_path / "soul.db")
    dying_disk(newest)
    with contextlib.closing(sqlite3.connect(second)) as connection:
        connection.execute(f"PRAGMA user_version = {max(MIGRATIONS) + 1}")
    dying_disk(tmp_path / "soul.db")
    async with life(tmp_path, day=3) as after:
        assert await after.noted() == ["day 0"]
        assert all(path.name in after.database.notice for path in (newest, second, third))
    third.write_bytes(b"no database")
    dying_disk(tmp_path / "soul.db")
    async with life(tmp_path, day=4) as afresh:
        assert await afresh.noted() == []
        assert third.name in afresh.database.notice
        assert "starting afresh" in afresh.database.notice
    assert len(files(tmp_path, "soul.db.corrupt-*")) == 2


async def test_a_copy_of_an_earlier_version_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    await (await Database.open(path, MIGRATIONS)).close()
    copies.write(path, "2026-01-05")
    path.unlink()
    newer = max(MIGRATIONS) + 1
    after = await Database.open(path, {**MIGRATIONS, newer: "CREATE TABLE more (x)"})
    assert await after.run(lambda rows: rows.execute("PRAGMA user_version").fetchone()[0]) == newer
    assert "going on from" in after.notice
    await after.close()


async def test_a_database_of_a_newer_version_is_refused_and_no_copy_takes_its_place(tmp_path: Path) -> None:
    await live(tmp_path, 0)
    with contextlib.closing(sqlite3.connect(tmp_path / "soul.db")) as connection:
        connection.execute(f"PRAGMA user_version = {max(MIGRATIONS) + 1}")
    with pytest.raises(ConfigError, match="newer version"):
        await Database.open(tmp_path / "soul.db", MIGRATIONS)


_KILLED = """
import asyncio, os, shutil, signal, sys
from pathlib import Path
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
whole = Path(sys.argv[1])
for left in range(200):
    folder = shutil.copytree(whole, whole.with_name(f"killed-{left}"))
    if (child := os.fork()) == 0:
        def count(event, _):
            global left
            if event in {"os.rename", "os.remove", "open", "sqlite3.connect"}:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        asyncio.run(Database.open(folder / "soul.db", MIGRATIONS))
        os._exit(0)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        break
"""


async def test_a_kill_at_any_step_has_the_next_start_do_the_same(tmp_path: Path) -> None:
    await live(tmp_path / "whole", 0)
    dying_disk(tmp_path / "whole" / "soul.db")
    killing = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, str(tmp_path / "whole"))
    assert await killing.wait() == 0
    killed = files(tmp_path, "killed-*")
    assert len(killed) > 5
    for folder in killed:
        async with life(folder) as after:
            assert await after.noted() == ["day 0"], folder
        assert len(files(folder, "soul.db.corrupt-*")) == 1, folder
        assert files(folder, "*restoring*") == [], folder


async def test_one_a_day_by_the_souls_own_calendar_and_three_days_are_kept(tmp_path: Path) -> None:
    async with life(tmp_path, timezone="Pacific/Auckland") as now:
        for number in range(5):
            await now.note(f"{number}")
            await now.daily.write()
            first = copies.newest_first(now.path)[0].read_bytes()
            await now.note(f"{number}, later")
            await now.daily.write()
            assert copies.newest_first(now.path)[0].read_bytes() == first
            await now.clock.advance(86_400)
        assert now.days() == ["10", "09", "08"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in copies.newest_first(now.path)} == {0o600}
        assert len(list((tmp_path / "copies").iterdir())) == 3


async def test_a_copy_waits_for_nobody_who_saves(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        await now.note("before")
        holding, copied = threading.Event(), threading.Event()

        def hold(_: sqlite3.Connection) -> bool:
            holding.set()
            return copied.wait(10)

        held = asyncio.create_task(now.database.run(hold))
        await asyncio.to_thread(holding.wait, 10)
        await now.daily.write()
        assert now.days() == ["05"]
        copied.set()
        assert await held


async def test_a_copy_that_holds_much_more_than_those_that_are_kept_stays(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.put_mark("much", "x" * 4 * 1024**2)
        await before.daily.write()
        whole = copies.path_of(before.path, "2026-01-05").read_bytes()
    shutil.move(tmp_path / "copies", tmp_path / "new" / "copies")
    async with life(tmp_path / "fresh"):
        pass
    shutil.copy(tmp_path / "fresh" / "soul.db", tmp_path / "new")
    async with life(tmp_path / "new") as now:
        for _ in range(6):
            await now.daily.write()
            await now.clock.advance(86_400)
        assert now.days() == ["10", "09", "08", "05"]
        assert copies.newest_first(now.path)[-1].read_bytes() == whole


async def test_copies_of_a_clock_that_was_ahead_give_way_to_those_of_today(tmp_path: Path) -> None:
    await live(tmp_path, 20, 21, 22)
    await live(tmp_path, 0)
    async with life(tmp_path) as now:
        assert now.days() == ["05"]


async def test_a_copy_that_cannot_be_made_is_told_once_tried_again_an_hour_later_and_stops_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "copies").write_text("a file where a folder should be")
    async with life(tmp_path) as now:
        for _ in range(2):
            await now.daily.write()
            await now.clock.advance(3600)
        assert [kind for kind, _, _ in now.console.lines] == ["warn"]
        (tmp_path / "copies").unlink()
        await now.daily.write()
        assert now.days() == ["05"]


async def test_a_damaged_database_is_not_copied_and_its_copies_stay(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        await now.put_mark("much", "x" * 1024**2)
        await now.daily.write()
    async with life(tmp_path, day=1) as now:
        with now.path.open("r+b") as file:  # SQLite copies these pages without an error
            file.seek(now.path.stat().st_size // 2 // 4096 * 4096)
            file.write(b"\xa5" * 8192)
        await now.daily.write()
        assert now.days() == ["05"]
        assert "damaged" in now.console.lines[0][2]
        assert len(list((tmp_path / "copies").iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny disk needs root")
async def test_without_room_for_the_copy_nothing_is_begun_afresh(tmp_path: Path) -> None:
    await live(tmp_path / "whole", 0)
    disk = tmp_path / "disk"
    disk.mkdir()
    await command("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk))
    try:
        shutil.copytree(tmp_path / "whole", disk, dirs_exist_ok=True)
        dying_disk(disk / "soul.db")
        ballast = disk / "ballast"
        with contextlib.suppress(OSError):
            ballast.write_bytes(b"x" * 4 * 1024**2)
        with pytest.raises(DiskFull):
            await Database.open(disk / "soul.db", MIGRATIONS)
        ballast.unlink()
        async with life(disk) as after:
            assert await after.noted() == ["day 0"]
            await after.daily.write()
            assert "room" not in str(after.console.lines), "today's is there"
            await after.clock.advance(86_400)
            await after.daily.write()
            assert "are to stay free" in after.console.lines[0][2]
    finally:
        await command("umount", str(disk))


async def command(*words: str) -> None:
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == 0
