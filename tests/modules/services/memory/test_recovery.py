"""A database that is really damaged costs what was remembered since the last snapshot, and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.storage.store import Credentials, Storage, open_storage
from common.clock import FakeClock
from common.redact import Redactor
from common.result import Ok
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.services.memory.export import Snapshots
from modules.services.memory.profiles import Profiles
from modules.services.memory.recovery import FORGOTTEN, KEPT, Recovery
from modules.services.memory.sqlite_store import SqliteMemories
from modules.services.memory.types import NewMemory
from tests.known_profiles import set_profiles

FOLDER = "agents/rowan/exports/"
DAY_S = 86_400
NOBODY_THERE = "s3://bucket?endpoint=http://127.0.0.1:1"
START = datetime(2026, 1, 5, 12, tzinfo=UTC)


@dataclass
class Life:
    """One start of a SOUL that remembers."""

    home: Home
    clock: FakeClock
    database: Database
    memories: SqliteMemories
    profiles: Profiles
    storage: Storage
    recovery: Recovery
    console: SilentConsole

    async def remember(self, subject: str, body: str = "It is so.\u2028And stays so.") -> None:
        await self.memories.save(NewMemory("fact", subject, body), self.clock.now())

    async def known(self) -> list[str]:
        return sorted(memory.subject for memory in await self.memories.listed())

    async def keys(self) -> list[str]:
        listed = await self.storage.list(FOLDER)
        assert isinstance(listed, Ok)
        return [item.key.removeprefix(FOLDER) for item in listed.data]

    async def put(self, name: str, data: bytes) -> None:
        assert isinstance(await self.storage.put(FOLDER + name, data), Ok)

    @property
    def told(self) -> list[str]:
        return [f"{kind}: {message}" for kind, message, _ in self.console.lines]


@asynccontextmanager
async def life(root: Path, *, day: int = 0, store: str = "", timezone: str = "UTC") -> AsyncIterator[Life]:
    home, console = Home.at(root), SilentConsole()
    clock = FakeClock(datetime.fromtimestamp(START.timestamp() + day * DAY_S, UTC))
    database = await Database.open(home.database, MIGRATIONS)
    storage = open_storage(store, root=root / "store", credentials=Credentials("id", "secret"), deadline_s=2)
    recovery = Recovery(
        database=database,
        path=home.database,
        storage=storage,
        agent_id="rowan",
        snapshots=Snapshots(database),
        journal=Journal(database, console, clock, Redactor()),
        clock=clock,
        timezone=timezone,
    )
    profiles = Profiles(database, clock)
    try:
        await recovery.wake()
        yield Life(home, clock, database, SqliteMemories(database), profiles, storage, recovery, console)
    finally:
        await storage.aclose()
        await database.close()


def damage(root: Path) -> None:
    """Overwrite pages in the middle of the file, as a dying disk would."""
    path = Home.at(root).database
    size = path.stat().st_size
    with path.open("r+b") as file:
        for offset in range(4096, size, 8192):
            file.seek(offset)
            file.write(b"\xa5" * 4096)


async def test_pages_overwritten_the_next_start_remembers_what_the_snapshot_holds(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.remember("tin")
        await set_profiles(before.database, before.clock, {"name": "rowan"}, {"name": "Ana"})
        assert await before.recovery.write()
    damage(tmp_path)
    async with life(tmp_path, day=1) as after:
        assert "kept as soul.db.corrupt-" in after.database.notice
        assert await after.known() == ["slate", "tin"]
        assert (await after.memories.listed())[0].body == "It is so.\u2028And stays so."
        assert (await after.profiles.get()).user == {"name": "Ana"}
        assert after.told == ["done: From the snapshot of 2026-01-05 came back: 2 memories, 2 fields"]
    assert len(list(Home.at(tmp_path).memory.glob("soul.db.corrupt-*"))) == 1


async def test_what_came_back_comes_back_once_and_what_is_retired_later_stays_so(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
    damage(tmp_path)
    async with life(tmp_path, day=1) as after:
        (memory,) = await after.memories.listed()
        await after.memories.retire(memory.id, after.clock.now())
    async with life(tmp_path, day=2) as later:
        assert await later.known() == []
        assert later.told == []


async def test_damaged_again_and_again_it_always_starts(tmp_path: Path) -> None:
    for day in range(3):
        async with life(tmp_path, day=day) as now:
            await now.remember(f"day {day}")
            await now.recovery.write_daily()
            assert await now.known() == [f"day {number}" for number in range(day + 1)]
        damage(tmp_path)


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"not gzip", gzip.compress(b"not json\n"), gzip.compress(b'{"record":"memory"}\n'), "cut", "flipped", "huge"],
    ids=["empty", "not gzip", "not json", "not whole", "cut", "flipped", "huge"],
)
async def test_a_damaged_snapshot_is_skipped_for_the_one_before(tmp_path: Path, rubbish: bytes | str) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
        whole = (tmp_path / "store" / FOLDER / "memories-2026-01-05.jsonl.gz").read_bytes()
        made = {
            "cut": whole[:-12],
            "flipped": whole[:40] + bytes([whole[40] ^ 255]) + whole[41:],
            "huge": gzip.compress(gzip.decompress(whole).replace(b'"recall_count":0', b'"recall_count":' + b"9" * 40)),
        }
        await before.put("memories-2026-01-06.jsonl.gz", rubbish if isinstance(rubbish, bytes) else made[rubbish])
    damage(tmp_path)
    async with life(tmp_path, day=2) as after:
        assert await after.known() == ["slate"]
        (told,) = after.console.lines
        assert told[1] == "From the snapshot of 2026-01-05 came back: 1 memories, 0 fields"
        assert told[2].startswith("2026-01-06 is damaged (")


async def test_without_any_snapshot_that_can_be_read_it_starts_empty_and_says_so(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.put("memories-2026-01-05.jsonl.gz", b"rubbish")
    damage(tmp_path)
    async with life(tmp_path) as after:
        assert await after.known() == []
        assert after.told == ["error: Nothing of what was remembered came back"]
        await after.remember("tin")
        assert await after.recovery.write()
    async with life(tmp_path) as later:
        assert later.told == []


async def test_killed_before_anything_came_back_the_next_start_brings_it_back(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
    damage(tmp_path)
    killed = await Database.open(Home.at(tmp_path).database, MIGRATIONS)
    assert killed.notice
    await killed.close()
    async with life(tmp_path) as after:
        assert after.database.notice == ""
        assert await after.known() == ["slate"]


async def test_while_the_store_is_out_of_reach_nothing_is_written_and_a_later_look_brings_it_back(
    tmp_path: Path,
) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
    damage(tmp_path)
    async with life(tmp_path, store=NOBODY_THERE) as after:
        assert after.told[0].startswith("error: What was remembered cannot be brought back yet")
        await after.remember("tin")
        assert not await after.recovery.write()
        after.recovery._storage = open_storage("", root=tmp_path / "store")
        await after.recovery.write_daily()
        assert await after.known() == ["tin"], "an hour passes before the store is asked again"
        assert len(after.told) == 1
        await after.clock.advance(3600)
        await after.recovery.write_daily()
        assert await after.known() == ["slate", "tin"]


async def test_a_snapshot_that_the_disk_does_not_give_is_skipped_for_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
        name = "memories-2026-01-06.jsonl.gz"
        await before.put(name, b"x")
        path = tmp_path / "store" / FOLDER / name
        path.unlink()
        monkeypatch.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as nothing_to_read:
            nothing_to_read.bind(name)
    damage(tmp_path)
    async with life(tmp_path) as after:
        assert await after.known() == ["slate"]
        assert after.console.lines[0][2].startswith("2026-01-06 cannot be read (")


async def test_the_newest_seven_days_are_kept_one_snapshot_each(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        await now.put("notes.txt", b"not ours")
        await now.remember("slate")
        for _ in range(KEPT + 3):
            await now.recovery.write_daily()
            await now.recovery.write_daily()
            await now.clock.advance(DAY_S)
        days = [f"memories-2026-01-{day:02}.jsonl.gz" for day in range(8, 15)]
        assert await now.keys() == [*days, "notes.txt"]


async def test_one_a_day_by_the_souls_own_calendar_and_one_more_at_a_clean_stop(tmp_path: Path) -> None:
    async with life(tmp_path, timezone="Pacific/Auckland") as now:
        await now.remember("slate")
        await now.recovery.write_daily()
        assert await now.keys() == ["memories-2026-01-06.jsonl.gz"]
        await now.remember("tin")
        await now.recovery.write_daily()
        path = tmp_path / "store" / FOLDER / "memories-2026-01-06.jsonl.gz"
        assert b"tin" not in gzip.decompress(path.read_bytes())
        assert await now.recovery.write()
        assert b"tin" in gzip.decompress(path.read_bytes())


async def test_the_same_memories_make_the_same_bytes(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        await now.remember("slate")
        for _ in range(2):
            await now.recovery.write_daily()
            await now.clock.advance(DAY_S)
        packed = [(tmp_path / "store" / FOLDER / name).read_bytes() for name in await now.keys()]
        assert len(packed) == 2
        assert len(set(packed)) == 1


async def save_more(now: Life) -> None:
    await now.remember("tin")


async def say_it_again(now: Life) -> None:
    await now.clock.advance(1)
    await now.remember("slate")


async def retire_one(now: Life) -> None:
    assert await now.memories.retire((await now.memories.listed())[0].id, now.clock.now())


async def set_a_field(now: Life) -> None:
    await set_profiles(now.database, now.clock, {"name": "rowan"}, {"name": "Ana"}, "commissioning")


async def commission(now: Life) -> None:
    await now.database.run(lambda rows: rows.execute("INSERT INTO marks VALUES ('commissioned_at', '2026')").rowcount)


@pytest.mark.parametrize("change", [save_more, say_it_again, retire_one, set_a_field, commission])
async def test_a_clean_stop_writes_again_only_what_has_changed_since_todays_snapshot(
    tmp_path: Path, change: Callable[[Life], Awaitable[None]]
) -> None:
    path = tmp_path / "store" / FOLDER / "memories-2026-01-05.jsonl.gz"
    async with life(tmp_path) as now:
        await now.remember("slate")
        await now.recovery.write_daily()
        path.unlink()
    async with life(tmp_path) as now:
        await now.database.run(lambda rows: rows.execute("INSERT INTO marks VALUES ('any', 'thing')").rowcount)
        assert await now.recovery.write()
        assert not path.exists()
        await change(now)
        assert await now.recovery.write()
        assert path.exists()


async def test_who_remembers_nothing_keeps_no_snapshot(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        assert not await now.recovery.write()
        assert await now.keys() == []


async def test_a_snapshot_that_cannot_be_kept_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where a folder should be")
    async with life(tmp_path) as now:
        await now.remember("slate")
        assert not await now.recovery.write()
        assert now.told == ["warn: The snapshot of what is remembered was not kept"]


async def test_what_an_owner_forgot_on_purpose_does_not_come_back(tmp_path: Path) -> None:
    async with life(tmp_path) as before:
        await before.remember("slate")
        await before.recovery.write()
    for path in Home.at(tmp_path).memory.iterdir():
        path.unlink()
    (Home.at(tmp_path).memory / FORGOTTEN).touch()
    for _ in range(2):
        async with life(tmp_path) as after:
            assert await after.known() == []
            assert after.told == []


@pytest.mark.parametrize("left", ["missing", "empty"])
async def test_a_database_that_is_gone_is_brought_back_from_the_snapshot(tmp_path: Path, left: str) -> None:
    async with life(tmp_path) as before:
        for number in range(50):
            await before.remember(f"subject {number}")
        await before.recovery.write()
    path = Home.at(tmp_path).database
    path.unlink()
    if left == "empty":
        path.touch()
    async with life(tmp_path) as after:
        assert len(await after.known()) == 50
        assert after.told == ["done: From the snapshot of 2026-01-05 came back: 50 memories, 0 fields"]


async def test_a_snapshot_never_takes_the_place_of_a_much_larger_one(tmp_path: Path) -> None:
    """Not on its own day, and not by its age; and what is brought back is the sum of both."""
    async with life(tmp_path) as before:
        for number in range(50):
            await before.remember(f"subject {number}", hashlib.sha512(bytes([number])).hexdigest())
        await before.recovery.write()
    path = tmp_path / "store" / FOLDER / "memories-2026-01-05.jsonl.gz"
    whole = path.read_bytes()
    Home.at(tmp_path).database.unlink()
    (Home.at(tmp_path).memory / FORGOTTEN).touch()
    async with life(tmp_path) as now:
        await now.remember("tin")
        assert await now.recovery.write()
        await now.remember("zinc")
        assert await now.recovery.write()
        assert await now.keys() == ["memories-2026-01-05.1.jsonl.gz", "memories-2026-01-05.jsonl.gz"]
        for day in range(KEPT + 3):
            await now.clock.advance(DAY_S)
            await now.remember(f"day {day}")
            await now.recovery.write_daily()
        assert len(await now.keys()) == KEPT + 1
    assert path.read_bytes() == whole
    Home.at(tmp_path).database.unlink()
    async with life(tmp_path, day=30) as after:
        assert len(await after.known()) == 50 + 2 + KEPT + 3


async def test_a_new_home_says_nothing_about_snapshots(tmp_path: Path) -> None:
    async with life(tmp_path) as now:
        assert now.told == []
        await now.remember("slate")
        assert await now.recovery.write()
