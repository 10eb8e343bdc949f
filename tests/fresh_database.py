"""Empty databases for new SOULs, copied from one template, as all migrations for each test would take 25 ms."""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS


@cache
def _migrated() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(";\n".join(MIGRATIONS.values()))
        connection.execute(f"PRAGMA user_version = {max(MIGRATIONS)}")
        return connection.serialize()


def lay_database(path: Path) -> None:
    """Write an empty database with the current schema to `path`, unless the file exists."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(_migrated())


async def open_database(path: Path) -> Database:
    lay_database(path)
    return await Database.open(path, MIGRATIONS)


def in_memory() -> sqlite3.Connection:
    """Return a new database in memory, opened as the store of a SOUL opens its file."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(_migrated())
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
