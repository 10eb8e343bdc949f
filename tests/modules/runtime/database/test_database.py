"""Proves that a database keeps what was committed, drops what was not, and reports trouble in one line."""

import asyncio
import contextlib
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from common.errors import ConfigError, StorageError, Transient
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.sleep_note import SleepNote, is_wake_requested, write_note

NOTES = {1: "CREATE TABLE notes (text TEXT NOT NULL)"}


@contextlib.asynccontextmanager
async def opened(path: Path, migrations: Mapping[int, str] = NOTES) -> AsyncIterator[Database]:
    database = await Database.open(path, migrations)
    try:
        yield database
    finally:
        await database.close()


def add(text: str) -> Callable[[sqlite3.Connection], None]:
    def insert(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO notes VALUES (?)", (text,))

    return insert


def notes(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY rowid")]


def pragma(name: str) -> Callable[[sqlite3.Connection], object]:
    return lambda connection: connection.execute(f"PRAGMA {name}").fetchone()[0]


def set_aside(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if ".corrupt-" in file.name]


async def test_what_was_committed_is_there_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "soul.db"
    async with opened(path) as database:
        await database.run(add("kept"))
    async with opened(path) as database:
        assert await database.run(notes) == ["kept"]
        assert database.notice == ""


async def test_an_exception_rolls_the_whole_function_back(tmp_path: Path) -> None:
    async with opened(tmp_path / "soul.db") as database:

        def half(connection: sqlite3.Connection) -> None:
            add("half")(connection)
            raise ValueError("stop here")

        with pytest.raises(ValueError, match="stop here"):
            await database.run(half)
        await database.run(add("whole"))
        assert await database.run(notes) == ["whole"]


async def test_the_file_is_private_and_every_commit_reaches_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await database.run(pragma("journal_mode")) == "wal"
        assert await database.run(pragma("synchronous")) == 2
        assert await database.run(pragma("foreign_keys")) == 1


async def test_parallel_callers_take_turns_and_lose_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path / "soul.db") as database:

        def count_up(connection: sqlite3.Connection) -> None:
            add(str(len(notes(connection))))(connection)

        await asyncio.gather(*(database.run(count_up) for _ in range(50)))
        assert await database.run(notes) == [str(number) for number in range(50)]


async def test_an_older_file_is_brought_up_to_date_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        await database.run(add("old"))
    async with opened(path, {**NOTES, 2: "ALTER TABLE notes ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'"}) as database:
        rows = await database.run(lambda connection: connection.execute("SELECT text, mood FROM notes").fetchall())
        assert [tuple(row) for row in rows] == [("old", "calm")]
        assert await database.run(pragma("user_version")) == 2


async def test_a_migration_that_fails_leaves_the_older_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        await database.run(add("old"))
    broken = "ALTER TABLE notes ADD COLUMN mood TEXT; INSERT INTO nowhere VALUES (1)"
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        await Database.open(path, {**NOTES, 2: broken})
    async with opened(path) as database:
        assert await database.run(pragma("user_version")) == 1
        await database.run(add("new"))
        assert await database.run(notes) == ["old", "new"]


async def test_a_newer_file_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path, {**NOTES, 2: "CREATE TABLE more (x)"}):
        pass
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="newer version") as caught:
        await Database.open(path, NOTES)
    assert caught.value.remedy
    assert path.read_bytes() == before


async def test_a_file_older_than_the_first_step_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path):
        pass
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"before 0\.3") as caught:
        await Database.open(path, {2: NOTES[1]})
    assert caught.value.remedy
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["not a database", "middle", "cut"])
async def test_a_damaged_file_is_set_aside_whole_and_a_new_one_begun(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        for number in range(200):
            await database.run(add(f"{number}" * 100))
    good = path.read_bytes()
    bad = {
        "not a database": b"hello, this is a letter" * 100,
        "middle": good[:4096] + b"\xff" * 12288 + good[16384:],
        "cut": good[: len(good) // 2],
    }[damage]
    path.write_bytes(bad)

    async with opened(path) as database:
        assert await database.run(notes) == []
        kept = set_aside(tmp_path)
        assert [file.read_bytes() for file in kept] == [bad]
        assert kept[0].name in database.notice
        assert "starting afresh" in database.notice


async def test_a_full_disk_is_one_line_with_a_remedy_and_what_was_accepted_stays(tmp_path: Path) -> None:
    async with opened(tmp_path / "soul.db") as database:
        await database.run(add("accepted"))
        await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 3").fetchone())
        with pytest.raises(StorageError, match="Disk full") as caught:
            await database.run(add("x" * 100_000))
        assert "\n" not in str(caught.value)
        assert caught.value.remedy
        assert await database.run(notes) == ["accepted"]


async def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="Cannot write"):
        await Database.open(tmp_path / "file" / "soul.db", NOTES)


async def test_a_folder_in_place_of_the_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "soul.db").mkdir()
    with pytest.raises(StorageError, match="cannot be opened"):
        await Database.open(tmp_path / "soul.db", NOTES)


async def test_damage_that_shows_later_is_told_and_mended_by_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        for number in range(200):
            await database.run(add(f"{number}" * 100))
    async with opened(path) as database:
        await database.run(lambda connection: connection.execute("PRAGMA shrink_memory").fetchall())
        size = path.stat().st_size
        path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (size - 4096))
        with pytest.raises(StorageError, match="damaged"):
            await database.run(notes)
    async with opened(path) as database:
        assert "damaged" in database.notice
        await database.run(add("new life"))


async def test_another_program_that_holds_the_file_is_a_passing_trouble(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    async with opened(path) as database:
        await database.run(lambda connection: connection.execute("PRAGMA busy_timeout = 50").fetchone())
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Transient, match="in use"):
            await database.run(add("blocked"))
        other.execute("ROLLBACK")
        other.close()
        await database.run(add("free again"))
        assert await database.run(notes) == ["free again"]


async def test_a_caller_that_is_cancelled_does_not_tear_its_transaction(tmp_path: Path) -> None:
    async with opened(tmp_path / "soul.db") as database:
        loop = asyncio.get_running_loop()
        entered = asyncio.Event()

        def slow(connection: sqlite3.Connection) -> None:
            add("first half")(connection)
            loop.call_soon_threadsafe(entered.set)
            add("second half")(connection)

        task = asyncio.create_task(database.run(slow))
        await entered.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert await database.run(notes) == ["first half", "second half"]


async def test_the_schema_of_the_house_opens_twice(tmp_path: Path) -> None:
    for _ in range(2):
        async with opened(tmp_path / "soul.db", MIGRATIONS) as database:
            tables = await database.run(
                lambda connection: connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            )
            assert {"intents", "feed_keys", "journal", "pending_notifications"} <= {row[0] for row in tables}


@pytest.mark.parametrize("left", ["missing", "empty"])
async def test_a_lost_file_is_told_where_signs_tell_of_an_earlier_one(tmp_path: Path, left: str) -> None:
    path = tmp_path / "soul.db"
    if left == "empty":
        path.touch()
    database = await Database.open(path, NOTES, signs=["status.json", "store"])
    await database.close()
    assert database.notice.startswith(f"soul.db is {left}, and status.json, store tell of an earlier one; ")


async def test_a_log_without_its_file_is_kept(tmp_path: Path) -> None:
    path, log = tmp_path / "soul.db", tmp_path / "soul.db-wal"
    log.write_bytes(b"what was committed last")
    async with opened(path) as database:
        assert "soul.db-wal tell of an earlier one; kept as soul.db.corrupt-" in database.notice
        await database.run(add("new"))
    (kept,) = set_aside(tmp_path)
    assert kept.read_bytes() == b"what was committed last"


async def test_a_first_start_that_was_killed_early_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    path.touch()
    async with opened(path) as database:
        assert database.notice == ""


def _one_byte(path: Path) -> None:
    path.write_bytes(b"\n")


def _no_tables(path: Path) -> None:
    """Write what SQLite leaves of a start that was killed before the first table was created."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def _only_a_version(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(NOTES)}")


@pytest.mark.parametrize("left", [_one_byte, _no_tables, _only_a_version])
async def test_a_file_without_tables_is_told_as_lost_where_signs_tell_of_an_earlier_one(
    tmp_path: Path, left: Callable[[Path], None]
) -> None:
    path = tmp_path / "soul.db"
    left(path)
    database = await Database.open(path, NOTES, signs=["status.json"])
    await database.run(add("new"))
    assert await database.run(notes) == ["new"]
    await database.close()
    assert database.notice.endswith("starting afresh")
    assert len(set_aside(tmp_path)) == 1


@pytest.mark.parametrize("left", [_one_byte, _no_tables])
async def test_a_file_without_tables_is_a_new_one_where_no_signs_are(
    tmp_path: Path, left: Callable[[Path], None]
) -> None:
    left(tmp_path / "soul.db")
    async with opened(tmp_path / "soul.db") as database:
        assert database.notice == ""


async def test_a_log_beside_a_file_of_one_byte_is_kept(tmp_path: Path) -> None:
    path, log = tmp_path / "soul.db", tmp_path / "soul.db-wal"
    _one_byte(path)
    log.write_bytes(b"what was committed last")
    async with opened(path):
        assert log.with_name(f"{set_aside(tmp_path)[0].name.removesuffix('-wal')}-wal").read_bytes() == (
            b"what was committed last"
        )


async def test_a_first_shape_that_cannot_be_made_leaves_no_table_behind(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    with pytest.raises(sqlite3.OperationalError):
        await Database.open(path, {**NOTES, 2: "CREATE TABLE more (id); SELECT * FROM nowhere"})
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []


async def test_a_file_of_the_right_version_without_tables_is_named_to_who_only_reads(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {max(MIGRATIONS)}")
    with pytest.raises(StorageError, match="is damaged"):
        await Database.beside(path)


async def test_who_only_reads_beside_a_soul_does_not_wake_it(tmp_path: Path) -> None:
    write_note(tmp_path, SleepNote("rowan", "did:plc:rowan", "2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z"))
    path = tmp_path / "soul.db"
    async with await Database.open(path, MIGRATIONS):
        pass
    async with await Database.beside(path) as beside:
        await beside.run(lambda connection: connection.execute("SELECT count(*) FROM marks").fetchone())
    assert not is_wake_requested(tmp_path)
    async with await Database.beside(path) as beside:
        await beside.run(partial(marks.put, values={"a": "b"}))
    assert is_wake_requested(tmp_path)
