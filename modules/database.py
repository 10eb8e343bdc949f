"""One SQLite file for what must survive a crash in the middle: intents, journal, pending notifications.

One thread owns the connection; everybody else hands it a function that runs inside one transaction. What `run` has
returned is on the disk (`synchronous=FULL`). A file that is damaged is set aside, never overwritten; a file that a
newer version wrote is refused.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

from common.errors import ConfigError, SoulError, StorageError, Transient
from common.files import storage_error
from modules.schema import MIGRATIONS, add_functions

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0

_ROOM_BYTES = 256 * 1024
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_UNWRITABLE = {
    sqlite3.SQLITE_IOERR: "the disk reports an error",
    sqlite3.SQLITE_READONLY: "the file is read-only",
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
}


class _Damaged(sqlite3.DatabaseError):
    """What a check of the whole file found, where SQLite itself had not stumbled yet."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class Database:
    """The open file. `notice` is a line for the owner when it was damaged or lost and had to be begun afresh."""

    def __init__(self, path: Path, connection: sqlite3.Connection, writer: ThreadPoolExecutor, notice: str) -> None:
        self._path = path
        self._connection = connection
        self._writer = writer
        self.notice = notice

    @classmethod
    async def open(cls, path: Path, migrations: Sequence[str], *, signs: Sequence[str] = ()) -> Database:
        """Open or create `path` and bring it to the shape of the last of `migrations`.

        Args:
            path: the file.
            migrations: one script per step.
            signs: names of what shows that there was a database here before; a missing or empty file is then told
                as lost.

        Raises:
            ConfigError: a newer version wrote the file.
            StorageError: the disk is full or refuses.
            Transient: another process holds the file.

        """
        writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="soul-db")
        try:
            connection, notice = await asyncio.get_running_loop().run_in_executor(
                writer, _open_or_set_aside, path, migrations, signs
            )
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(path, connection, writer, notice)

    @classmethod
    async def beside(cls, path: Path) -> Database:
        """Open the file of a SOUL that may be awake in another process. Nothing is made, migrated or set aside.

        Raises:
            ConfigError: there is no database yet, or another version wrote it.
            StorageError: it is damaged or cannot be read.
            Transient: it is in use for longer than the busy time-out.

        """
        writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="soul-db")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(writer, _open_existing, path, "rw")
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(path, connection, writer, "")

    async def run(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` in the writer thread inside one transaction; an exception rolls it back and comes out here.

        A caller that is cancelled while `fn` runs does not stop it: the transaction then commits unseen.

        Raises:
            StorageError: the disk is full or refuses, or the file turned out to be damaged.
            Transient: another process holds the file for longer than the busy time-out.

        """
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._transact, fn)

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` in a thread and on a connection of its own, which only reads one unchanging view.

        For what takes long: no transaction waits for it.

        Raises:
            StorageError: the file is damaged or cannot be read.
            Transient: another process holds the file for longer than the busy time-out.

        """

        def look() -> T:
            with reading(self._path) as connection:
                return fn(connection)

        return await asyncio.to_thread(look)

    async def close(self) -> None:
        """Close the file; what was handed in before is finished first."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._connection.close)
        self._writer.shutdown()

    def _transact(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = fn(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            known = _explain(self._path, error)
            if known is None:
                raise
            raise known from error
        return result


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One unchanging view of the SOUL's database, for a command that only looks, whether the SOUL runs or not.

    Raises:
        ConfigError: there is no database yet, or another version wrote it.
        StorageError: it is damaged or cannot be read.
        Transient: it is in use for longer than the busy time-out.

    """
    connection = _open_existing(path, "ro")
    try:
        connection.execute("BEGIN")
        yield connection
    except sqlite3.Error as error:
        raise _explain(path, error) or error from error
    finally:
        connection.close()


def copy(path: Path, target: Path) -> None:
    """Write one unchanging view of the SOUL's database to the new file `target`; `path` and all beside it stay as is.

    Raises:
        ConfigError: there is no database yet, or another version wrote it.
        StorageError: it is damaged or cannot be read.
        Transient: it is in use for longer than the busy time-out.

    """
    # NOTE(self): who only reads leaves files behind that it had to make; who may write removes them at the end.
    alone = not path.with_name(f"{path.name}-wal").exists()
    source = _open_existing(path, "rw" if alone else "ro")
    try:
        into = sqlite3.connect(target)
        try:
            source.backup(into)
        finally:
            into.close()
    except sqlite3.Error as error:
        raise _explain(path, error) or error from error
    finally:
        source.close()


def _open_existing(path: Path, mode: Literal["ro", "rw"]) -> sqlite3.Connection:
    if not path.exists():
        raise ConfigError(f"There is no {path} yet", remedy="It is made when the SOUL first wakes: `soul run`.")
    try:
        address = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA synchronous = FULL")
            _check_version(path, int(connection.execute("PRAGMA user_version").fetchone()[0]))
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise _explain(path, error) or error from error
    return connection


def _check_version(path: Path, version: int) -> None:
    if version < len(MIGRATIONS):
        raise ConfigError(
            f"{path} was written by an older version (schema {version}; this one reads {len(MIGRATIONS)})",
            remedy="Let the SOUL wake once (`soul run`): that brings it up to date.",
        )
    if version > len(MIGRATIONS):
        raise _too_new(path, version, len(MIGRATIONS))


def _too_new(path: Path, version: int, known: int) -> ConfigError:
    return ConfigError(
        f"{path} was written by a newer version (schema {version}; this one knows {known})",
        remedy="Install the newer version again, or move the file away to start afresh.",
    )


def _open_or_set_aside(path: Path, migrations: Sequence[str], signs: Sequence[str]) -> tuple[sqlite3.Connection, str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        notice = _notice_loss(path, signs)
        path.touch(mode=0o600)
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        return _open(path, migrations), notice
    except sqlite3.Error as error:
        if _code(error) not in _DAMAGED:
            raise _explain(path, error) or error from error
        notice = f"{path.name} is damaged ({error}); {_set_aside(path)}, starting afresh"
    try:
        path.touch(mode=0o600)
        return _open(path, migrations), notice
    except sqlite3.Error as error:
        raise _explain(path, error) or error from error


def _notice_loss(path: Path, signs: Sequence[str]) -> str:
    """A line for the owner if the file is missing or empty although there was one; what lies beside it is set aside."""
    if path.exists() and (path.is_dir() or path.stat().st_size):
        return ""
    wal = path.with_name(f"{path.name}-wal")
    told = [*([wal.name] if wal.exists() and wal.stat().st_size else []), *signs]
    if not told:
        return ""
    state = "empty" if path.exists() else "missing"
    # NOTE(self): SQLite deletes a log that lies beside an empty file.
    return f"{path.name} is {state}, and {', '.join(told)} tell of an earlier one; {_set_aside(path)}, starting afresh"


def _open(path: Path, migrations: Sequence[str]) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA foreign_keys = ON")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _Damaged(found)  # noqa: TRY301 - closes the connection on the same path as what SQLite raises
        _migrate(path, connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(path: Path, connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(migrations):
        raise _too_new(path, version, len(migrations))
    add_functions(connection)
    for number in range(version, len(migrations)):
        script = f"BEGIN IMMEDIATE;\n{migrations[number]};\nPRAGMA user_version = {number + 1};\nCOMMIT;"
        connection.executescript(script)


def _set_aside(path: Path) -> str:
    """Rename what lies there; in words, what became of it."""
    aside = f"{path.name}.corrupt-{time.time_ns()}"
    kept = False
    try:
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.replace(path.with_name(aside + suffix))
                kept = True
    except OSError as refused:
        raise storage_error(path, refused) from refused
    return f"kept as {aside}" if kept else "nothing of it is left"


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_full(path: Path) -> bool:
    return shutil.disk_usage(path.parent).free < _ROOM_BYTES


def _explain(path: Path, error: sqlite3.Error) -> SoulError | None:
    code = _code(error)
    # NOTE(self): a full disk often shows as a plain I/O error, where the shared-memory file could not grow.
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _is_full(path)):
        return StorageError(
            f"Disk full: cannot write {path}", remedy="Free some space and start again; what was accepted is kept."
        )
    if code in _DAMAGED:
        return StorageError(
            f"{path} is damaged ({error})", remedy="Start again: the damaged file is set aside and a new one begun."
        )
    if code in _UNWRITABLE:
        return StorageError(
            f"Cannot write {path}: {_UNWRITABLE[code]}",
            remedy=f"Check the disk and the permissions under {path.parent}.",
        )
    if code in _BUSY:
        return Transient(f"{path} is in use by another program")
    return None
