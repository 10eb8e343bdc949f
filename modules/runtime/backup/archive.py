"""Writes a home into one file: a compressed tar archive, sealed where there is a passphrase.

The database is copied after the files beside it, by SQLite's own backup, so that it knows at least as much as they do;
whoever writes these replaces them in one step. The copy is marked as one, unless the home ends with it: it does not
know what is done afterwards. What is written before the database tells of it is copied after it: pictures that wait for
their post, and the lists of those that were posted. Left out is what belongs to one process or is made anew: locks,
logs, downloaded pictures, daily copies of the database.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from common.errors import UsageError
from common.files import storage_error
from modules.runtime.backup.sealing import SealingWriter
from modules.runtime.database.copies import mark_restored
from modules.runtime.database.file import COPIES, copy, damaged, find_damage
from modules.runtime.home import MOVED, Home

MEMORY = ".memory"
ROOT_FILES = (".env", "SOUL.md", "SELF.md", "voice-phrases.json")
FOLDERS = ("workspace",)
HEAD = "soul-backup"
"""The name of the first entry, by which a backup is known."""
PRIVATE = 0o600

_LEFT_OUT = {"logs", "images", "starts.json", MOVED, COPIES}
_WAITING_PICTURES = "images/waiting"
_POSTED_PICTURES = ("post_log.jsonl", "arena_posted.json", "web_images_posted.json")


def write_backup(home: Home, target: Path, passphrase: str = "", *, ends: bool = False) -> int:
    """Write the new file `target`, readable by its owner alone; return how many files it holds.

    With `ends` nobody lives in the home after it.

    Raises:
        UsageError: there is a file already.
        ConfigError: there is no database yet, or a newer version wrote it.
        StorageError: the database is damaged, or the disk is full or refuses.

    """
    if target.exists():
        raise UsageError(f"{target} is there already", remedy="Name another file, or move that one away.")
    try:
        with tempfile.TemporaryDirectory(prefix=".soul-backup-", dir=target.parent) as folder:
            unfinished = Path(folder) / "unfinished"  # nobody else can lay anything there
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
            with os.fdopen(handle, "wb") as file:
                count = _write(home, file, passphrase, Path(folder), ends=ends)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(target)
    except OSError as error:
        raise storage_error(target, error) from error
    return count


def _write(home: Home, file: IO[bytes], passphrase: str, folder: Path, *, ends: bool) -> int:
    sealed = SealingWriter(file, passphrase) if passphrase else None
    packed = gzip.GzipFile(fileobj=cast("IO[bytes]", sealed or file), mode="wb", filename="", mtime=0)
    with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        _add(archive, HEAD, b"1\n")
        found = list(_files(home))
        for name, path in found:
            with contextlib.suppress(FileNotFoundError):  # it was taken away meanwhile
                _add(archive, name, path.read_bytes())
        copied = folder / home.database.name
        copy(home.database, copied)
        if damage := find_damage(copied):
            raise damaged(home.database, damage)
        if not ends:
            mark_restored(copied, "a backup")
        entry = _entry(f"{MEMORY}/{home.database.name}", copied.stat().st_size)
        with copied.open("rb") as database:
            archive.addfile(entry, database)
        later = list(_pictures(home))
        for name, path in later:
            with contextlib.suppress(FileNotFoundError):  # too old to be posted
                _add(archive, name, path.read_bytes())
    if sealed:
        sealed.close()
    return len(found) + 1 + len(later)


def _files(home: Home) -> Iterator[tuple[str, Path]]:
    """Yield the name in the archive and the path of each file that is copied before the database."""
    for name in ROOT_FILES:
        if (home.root / name).is_file():
            yield name, home.root / name
    for name in FOLDERS:
        yield from _below(home.root / name, name)
    for name, path in _below(home.memory, MEMORY):
        is_database = path.name.startswith(home.database.name) and path.parent == home.memory
        if (
            PurePosixPath(name).parts[1] not in {*_LEFT_OUT, *_POSTED_PICTURES}
            and not is_database
            and path.suffix != ".lock"
        ):
            yield name, path


def _pictures(home: Home) -> Iterator[tuple[str, Path]]:
    """Yield the same of each file that is copied after the database."""
    yield from _below(home.memory / _WAITING_PICTURES, f"{MEMORY}/{_WAITING_PICTURES}")
    for name in _POSTED_PICTURES:
        if (home.memory / name).is_file():
            yield f"{MEMORY}/{name}", home.memory / name


def _below(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, PRIVATE
    return entry
