"""Proves that a command can read the database of a SOUL, awake or not, and can change nothing."""

import sqlite3
from pathlib import Path

import pytest

from common.errors import ConfigError, StorageError
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "a home?#%" / "soul.db"
    database = await Database.open(path, MIGRATIONS)
    await _add(database, "2026-01-05")
    await database.close()
    return path


async def _add(database: Database, day: str) -> None:
    await database.run(lambda connection: connection.execute("INSERT INTO budget_days VALUES (?, 'normal')", (day,)))


def _days(connection: sqlite3.Connection) -> list[str]:
    return [row["day"] for row in connection.execute("SELECT day FROM budget_days ORDER BY day")]


def test_a_database_that_nobody_holds_is_read(path: Path) -> None:
    with reading(path) as connection:
        assert _days(connection) == ["2026-01-05"]


async def test_while_another_process_writes_the_view_stays_as_it_was(path: Path) -> None:
    database = await Database.open(path, MIGRATIONS)
    with reading(path) as connection:
        assert _days(connection) == ["2026-01-05"]
        await _add(database, "2026-01-06")
        assert _days(connection) == ["2026-01-05"]
    with reading(path) as connection:
        assert _days(connection) == ["2026-01-05", "2026-01-06"]
    await database.close()


def test_nothing_can_be_written(path: Path) -> None:
    with pytest.raises(StorageError, match="read-only"), reading(path) as connection:
        connection.execute("DELETE FROM budget_days")


def test_without_a_database_there_is_one_clear_line_and_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has not lived here yet") as caught, reading(tmp_path / "soul.db"):
        pass
    assert "soul run" in caught.value.remedy
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("version", "said"), [(0, "before"), (OLDEST_SCHEMA - 1, "before"), (max(MIGRATIONS) + 1, "newer")]
)
def test_another_versions_database_is_refused(path: Path, version: int, said: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(ConfigError, match=said) as caught, reading(path):
        pass
    assert caught.value.remedy


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "soul.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageError, match="damaged"), reading(path):
        pass


def test_an_error_of_the_reader_comes_out_as_it_is(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), reading(path) as connection:
        connection.execute("SELECT * FROM nowhere")
