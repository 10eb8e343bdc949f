"""One SQLite file for what must survive a crash in the middle: intents, journal, pending notifications.

One thread owns the connection; everybody else hands it a function that runs inside one transaction. What `run` has
returned is on the disk (`synchronous=FULL`). A damaged file is set aside, never overwritten, and its newest copy takes
its place; a file that a newer version wrote is refused.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from common.errors import MachineTrouble, SoulError, Transient
from common.files import storage_error, sync
from modules.runtime.database import copies, marks
from modules.runtime.database.file import (
    BUSY_TIMEOUT_S,
    COPIES,
    DAMAGED,
    NO_TABLES,
    error_code,
    explain,
    has_tables,
    open_existing,
    reading,
    remove,
    schema_of,
    too_new,
    too_old,
)
from modules.runtime.sleep_note import request_wake

T = TypeVar("T")

_NOTHING_BYTES = 1
"""SQLite treats a file of one byte, whatever it is, as empty."""


class _DamagedDatabase(sqlite3.DatabaseError):
    """Damage that a check of the whole file found before SQLite itself met it."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class Database:
    """The open file. `notice` is a line for the owner if it was damaged or lost, and says what takes its place."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        writer: ThreadPoolExecutor,
        notice: str,
        *,
        is_beside: bool = False,
    ) -> None:
        self._path = path
        self._connection = connection
        self._writer = writer
        self.notice = notice
        self._is_beside = is_beside

    @classmethod
    async def open(cls, path: Path, migrations: Mapping[int, str], *, signs: Sequence[str] = ()) -> Database:
        """Open or create `path` and bring it to the newest of `migrations`.

        Args:
            path: the file.
            migrations: one script per step, by the schema's number after it; the first makes a new file.
            signs: names of what shows that there was a database here before; a file that is missing, or that holds
                no tables, then counts as lost. Copies of it are such a sign as well.

        Raises:
            ConfigError: a newer version wrote the file, or one older than the first of `migrations`.
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
        """Open the file of a SOUL that may be awake in another process. Nothing is created, migrated or set aside.

        Closing it wakes a sleeping SOUL if something was written.

        Raises:
            ConfigError: there is no database yet, or another version wrote it.
            StorageError: it is damaged or cannot be read.
            Transient: it is in use for longer than the busy time-out.

        """
        writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="soul-db")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(writer, open_existing, path, "rw")
        except BaseException:
            writer.shutdown(wait=False)
            raise
        return cls(path, connection, writer, "", is_beside=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` in the writer thread inside one transaction, and return its result; an exception rolls it back.

        If the caller is cancelled while `fn` runs, `fn` goes on, and the transaction commits.

        Raises:
            StorageError: the disk is full or refuses, or the file turned out to be damaged.
            Transient: another process holds the file for longer than the busy time-out.

        """
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._transact, fn)

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn` in a thread, on its own connection, which only reads one unchanging view; return its result.

        This is for what takes long: no transaction waits for it.

        Raises:
            StorageError: the file is damaged or cannot be read.
            Transient: another process holds the file for longer than the busy time-out.

        """

        def look() -> T:
            with reading(self._path) as connection:
                return fn(connection)

        return await asyncio.to_thread(look)

    async def rewrite(self) -> None:
        """Delete the copies, rewrite the file without what was deleted, and empty the log beside it.

        Only for the process that lives in the home, or with nobody awake: others cannot write meanwhile.

        Raises:
            StorageError: the disk is full or refuses.
            Transient: another process holds the file for longer than the busy time-out.

        """
        await asyncio.get_running_loop().run_in_executor(self._writer, self._rewrite)

    async def rewrite_if_due(self) -> None:
        """Do as `rewrite` if the mark `REWRITE` is set. Raises as `rewrite`."""
        if await self.read(lambda connection: marks.get(connection, marks.REWRITE)):
            await self.rewrite()

    async def close(self) -> None:
        """Close the file, after running what was handed in before."""
        wrote = await asyncio.get_running_loop().run_in_executor(self._writer, self._close)
        self._writer.shutdown()
        if wrote and self._is_beside:
            await asyncio.to_thread(request_wake, self._path.parent)

    def _close(self) -> bool:
        """Close the connection; return whether something was written."""
        wrote = self._connection.total_changes > 0
        self._connection.close()
        return wrote

    def _rewrite(self) -> None:
        copies.delete_all(self._path)
        try:
            self._connection.execute("VACUUM")
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            if not busy:
                marks.remove(self._connection, marks.REWRITE)
        except sqlite3.Error as error:
            known = explain(self._path, error)
            if known is None:
                raise
            raise known from error
        if busy:
            raise Transient(f"{self._path} is in use by another program")

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
            known = explain(self._path, error)
            if known is None:
                raise
            raise known from error
        return result


def _open_or_set_aside(
    path: Path, migrations: Mapping[int, str], signs: Sequence[str]
) -> tuple[sqlite3.Connection, str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        signs = (*signs, *([COPIES] if copies.newest_first(path) else []))
        loss = _notice_loss(path, signs)
        if not loss:
            path.touch(mode=0o600)
    except OSError as error:
        raise storage_error(path, error) from error
    if not loss:
        try:
            return _open(path, migrations, may_be_blank=not signs), ""
        except sqlite3.Error as error:
            if error_code(error) not in DAMAGED:
                raise explain(path, error) or error from error
            loss = f"{path.name} is damaged ({_line(error)})"
    ready = path.with_name(f"{path.name}.restoring")
    try:
        # NOTE(self): ready before anything is moved, so that after a kill at any moment the next start does the same.
        goes_on = _prepare_copy(path, ready, migrations)
        notice = f"{loss}; {_set_aside(path)}, {goes_on}"
        if ready.exists():
            ready.replace(path)
            sync(path.parent)
        path.touch(mode=0o600)
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        return _open(path, migrations, may_be_blank=True), notice
    except sqlite3.Error as error:
        raise explain(path, error) or error from error


def _notice_loss(path: Path, signs: Sequence[str]) -> str:
    """Return what to tell the owner if the file is missing or empty although there was one; else ""."""
    if path.exists() and (path.is_dir() or path.stat().st_size > _NOTHING_BYTES):
        return ""
    wal = path.with_name(f"{path.name}-wal")
    told = [*([wal.name] if wal.exists() and wal.stat().st_size else []), *signs]
    if not told:
        return ""
    state = "empty" if path.exists() else "missing"
    # NOTE(self): SQLite deletes a log that lies beside an empty file.
    return f"{path.name} is {state}, and {', '.join(told)} tell of an earlier one"


def _prepare_copy(path: Path, ready: Path, migrations: Mapping[int, str]) -> str:
    """Make `ready` from the newest usable copy, and return in words how it goes on; without one `ready` is absent.

    Raises `MachineTrouble`, so that no new database is begun then.
    """
    skipped = ""
    for copied in copies.newest_first(path):
        remove(ready)
        try:
            ready.touch(mode=0o600)
            shutil.copyfile(copied, ready)
            _open(ready, migrations, may_be_blank=False).close()
            copies.mark_restored(ready, copied.name)
            sync(ready)
        except (OSError, sqlite3.Error, SoulError) as error:
            known = explain(ready, error) if isinstance(error, sqlite3.Error) else error
            known = storage_error(ready, known) if isinstance(known, OSError) else known
            if isinstance(known, MachineTrouble):
                raise known from error
            skipped += f"{COPIES}/{copied.name} cannot be used ({_line(error)}), "
        else:
            taken = datetime.fromtimestamp(copied.stat().st_mtime, UTC)
            since = "what came since is missing, also in today's count of the model's use"
            return f"{skipped}going on from {COPIES}/{copied.name} of {taken:%Y-%m-%d %H:%M} UTC: {since}"
    remove(ready)
    return f"{skipped}starting afresh"


def _open(path: Path, migrations: Mapping[int, str], *, may_be_blank: bool) -> sqlite3.Connection:
    """Open the file and migrate it; raise `_DamagedDatabase` if it lacks the tables that it must have."""
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA foreign_keys = ON")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _DamagedDatabase(found)  # noqa: TRY301 - closes the connection on the same path as SQLite's errors
        _migrate(path, connection, migrations, may_be_blank=may_be_blank)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(path: Path, connection: sqlite3.Connection, migrations: Mapping[int, str], *, may_be_blank: bool) -> None:
    version, newest = schema_of(connection), max(migrations)
    if version > newest:
        raise too_new(path, version, newest)
    blank = not has_tables(connection)
    if blank and (version or not may_be_blank):
        raise _DamagedDatabase(NO_TABLES)
    if not blank and version < min(migrations):
        raise too_old(path, version, min(migrations))
    if version < newest:
        # NOTE(self): in one transaction: after a kill the file is blank again, or as the older program reads it.
        script = ";\n".join(step for number, step in sorted(migrations.items()) if number > version)
        connection.executescript(f"BEGIN IMMEDIATE;\n{script};\nPRAGMA user_version = {newest};\nCOMMIT;")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _set_aside(path: Path) -> str:
    """Rename the file and its logs; return in words what became of them."""
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
