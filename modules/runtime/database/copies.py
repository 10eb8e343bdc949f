"""Copies of the database, one a day, in a folder beside it: if it is lost, the newest one takes its place.

A copy is written under another name, checked, and renamed: it is there whole or not at all. Copies hold what the
database held, so whoever deletes something on purpose must delete them as well.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from common.constants import LEFT_FREE_BYTES
from common.errors import StorageError
from common.files import storage_error, sync
from modules.runtime.database import marks
from modules.runtime.database.file import COPIES, copy, explain, find_damage, remove

KEPT = 3
_MUCH = 2
"""A copy that is so many times as large as another one holds much that the other lacks."""


def newest_first(database: Path) -> list[Path]:
    """Return the copies of a database, the newest first; each is named by its day."""
    return sorted(database.with_name(COPIES).glob("soul-????-??-??.db"), reverse=True)


def path_of(database: Path, day: str) -> Path:
    """Return the path of the copy of `day`, whether it exists or not."""
    return database.with_name(COPIES) / f"soul-{day}.db"


def write(database: Path, day: str) -> None:
    """Write the copy of `day`, and delete copies that are too old.

    Raises:
        SoulError: there is no room, or the database is damaged or in use.
        OSError: the disk refuses.
        sqlite3.Error: the copy cannot be made for another reason.

    """
    target = path_of(database, day)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    if shutil.disk_usage(target.parent).free - database.stat().st_size < LEFT_FREE_BYTES:
        raise StorageError(f"there is no room for it: {LEFT_FREE_BYTES // 1024**2} MiB of the disk are to stay free")
    unfinished = target.with_name("unfinished.db")
    remove(unfinished)
    try:
        unfinished.touch(mode=0o600)
        copy(database, unfinished)
        if damage := find_damage(unfinished):
            raise StorageError(f"{database.name} is damaged ({damage})")
        sync(unfinished)
        unfinished.replace(target)
        sync(target.parent)
    finally:
        remove(unfinished)
    _delete_old(database, target)


def mark_restored(database: Path, name: str) -> None:
    """Mark a database that nobody has open as an earlier copy; `name` says which.

    Raises:
        SoulError: there is no room, or the database is damaged.

    """
    try:
        with closing(sqlite3.connect(database)) as connection, connection:
            marks.put(connection, {marks.RESTORED: name})
            marks.remove(connection, marks.RUNNING)
    except sqlite3.Error as error:
        raise explain(database, error) or error from error


def is_marked_restored(database: Path) -> bool:
    """Return whether a database that nobody has open is marked as an earlier copy; one without marks counts as one."""
    with closing(sqlite3.connect(database)) as connection:
        has_marks = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone()
        return not has_marks or bool(marks.get(connection, marks.RESTORED))


def delete_all(database: Path) -> None:
    """Delete every copy. Raises `StorageError`."""
    folder = database.with_name(COPIES)
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(folder, error) from error


def _delete_old(database: Path, newest: Path) -> None:
    """Keep the newest `KEPT` copies up to `newest`; delete others unless they are much larger than each of these.

    A copy of a later day was made with a clock that was ahead, or in another time zone: it is older than `newest`.
    """
    found = newest_first(database)
    kept = [path for path in found if path.name <= newest.name][:KEPT]
    largest = max(path.stat().st_size for path in kept)
    for path in found:
        if path not in kept and path.stat().st_size < _MUCH * largest:
            path.unlink()
