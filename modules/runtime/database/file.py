"""Opens the SOUL's database from outside, without a writer thread, and explains SQLite's errors."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from common.errors import ConfigError, SoulError, StorageError, Transient
from common.files import disk_full, machine_trouble
from modules.runtime.database.schema import MIGRATIONS, OLDEST_SCHEMA

BUSY_TIMEOUT_S = 5.0
COPIES = "copies"
"""The folder beside the database that holds its copies."""
NO_TABLES = "it holds no tables"
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_ROOM_BYTES = 256 * 1024
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNWRITABLE = {
    sqlite3.SQLITE_READONLY: "the file is read-only",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
}


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open one unchanging view of the SOUL's database, for a command that only reads, whether the SOUL runs or not.

    Raises:
        ConfigError: there is no database yet, or another version wrote it.
        StorageError: it is damaged or cannot be read.
        Transient: it is in use for longer than the busy time-out.

    """
    connection = open_existing(path, "ro")
    try:
        connection.execute("BEGIN")
        yield connection
    except sqlite3.Error as error:
        raise explain(path, error) or error from error
    finally:
        connection.close()


def copy(path: Path, target: Path) -> None:
    """Write one unchanging view of the SOUL's database to the new file `target`; `path` and all beside it stay as is.

    An older version may have written it, but none before `OLDEST_SCHEMA`.

    Raises:
        ConfigError: there is no database yet, or a newer version wrote it.
        StorageError: it is damaged or cannot be read.
        Transient: it is in use for longer than the busy time-out.

    """
    # NOTE(self): a read-only connection leaves files that it had to make; one that may write removes them at the end.
    alone = not path.with_name(f"{path.name}-wal").exists()
    source = open_existing(path, "rw" if alone else "ro", oldest=OLDEST_SCHEMA)
    try:
        into = sqlite3.connect(target)
        try:
            source.backup(into)
        finally:
            into.close()
    except sqlite3.Error as error:
        raise explain(path, error) or error from error
    finally:
        source.close()


def find_damage(path: Path) -> str:
    """Return in one line what is wrong with a database that nobody has open; "" if nothing is."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else " ".join(found.split())


def remove(path: Path) -> None:
    """Delete a database and SQLite's files beside it. Raises `OSError`."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def open_existing(path: Path, mode: Literal["ro", "rw"], *, oldest: int | None = None) -> sqlite3.Connection:
    """Open a file with schema `oldest` (None: the newest) or later; the caller closes it. Raises as `reading` does."""
    if not path.exists():
        raise ConfigError(f"The SOUL has not lived here yet: there is no {path}", remedy="`soul run` starts it.")
    try:
        address = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = FULL")
            _check_shape(path, connection, max(MIGRATIONS) if oldest is None else oldest)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise explain(path, error) or error from error
    return connection


def _check_shape(path: Path, connection: sqlite3.Connection, oldest: int) -> None:
    version, newest = schema_of(connection), max(MIGRATIONS)
    if version > newest:
        raise too_new(path, version, newest)
    if not has_tables(connection):
        raise damaged(path, NO_TABLES)
    if version < OLDEST_SCHEMA:
        raise too_old(path, version, OLDEST_SCHEMA)
    if version < oldest:
        raise ConfigError(
            f"{path} was written by an older version (schema {version}; this one reads {newest})",
            remedy="`soul upgrade` tries the change in a copy first, then makes it.",
        )


def schema_of(connection: sqlite3.Connection) -> int:
    """Return the schema of the file: the number of its last migration."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether anything was ever created in the file, whatever its size."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def damaged(path: Path, problem: object) -> StorageError:
    """Return the error for a damaged database."""
    return StorageError(
        f"{path} is damaged ({problem})",
        remedy="Start again: its newest copy takes its place, and the damaged file is kept beside it.",
    )


def too_new(path: Path, version: int, known: int) -> ConfigError:
    """Return the error for a file whose schema is `version`, where this program knows up to `known`."""
    return ConfigError(
        f"{path} was written by a newer version (schema {version}; this one knows {known})",
        remedy=f"Install the newer version again; to start afresh, move it and {path.with_name(COPIES)} away.",
    )


def too_old(path: Path, version: int, oldest: int) -> ConfigError:
    """Return the error for a file whose schema is `version`, where this program reads `oldest` and later."""
    return ConfigError(
        f"{path} was written by a version before 0.3 (schema {version}; this one reads {oldest} and later)",
        remedy="Nothing was changed. Run `soul upgrade` of the last development version before 0.3 on this home first;"
        f" to start afresh, move it and {path.with_name(COPIES)} away.",
    )


def error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code; 0 if it gave none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_full(path: Path) -> bool:
    return shutil.disk_usage(path.parent).free < _ROOM_BYTES


def _may_open(path: Path) -> bool:
    """Return whether this user may open the file, so that the machine is at fault if it does not open."""
    return path.is_file() and os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)


def explain(path: Path, error: sqlite3.Error) -> SoulError | None:
    """Return the error for the owner that SQLite's error amounts to; None if the program is at fault."""
    code = error_code(error)
    # NOTE(self): a full disk often shows as a plain I/O error, when the shared-memory file could not grow.
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(path)):
        return disk_full(path)
    if code in DAMAGED:
        return damaged(path, error)
    if code == sqlite3.SQLITE_IOERR or (code == sqlite3.SQLITE_CANTOPEN and _may_open(path)):
        return machine_trouble(path, str(error))
    if code in _UNWRITABLE:
        return StorageError(
            f"Cannot write {path}: {_UNWRITABLE[code]}",
            remedy=f"Check the disk and the permissions under {path.parent}.",
        )
    if code in _BUSY:
        return Transient(f"{path} is in use by another program")
    return None
