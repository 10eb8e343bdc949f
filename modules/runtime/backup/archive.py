"""Writes a home into one file and brings it back: a compressed tar archive, sealed where there is a passphrase.

The database is copied last, by SQLite's own backup, so that it knows at least as much as the files beside it; these are
replaced in one step by whoever writes them. Left out is what belongs to one process or is made anew: locks, logs,
the status, downloaded pictures.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from common.errors import StorageError, UsageError
from common.files import storage_error
from modules.runtime.backup.sealing import MAGIC, SealedReader, SealingWriter
from modules.runtime.database.file import copy
from modules.runtime.home import Home

MOVED = "MOVED"
"""The file in `.memory` of a home that lives on elsewhere; its content is told to whoever wakes it."""

_MEMORY = ".memory"
_ROOT_FILES = (".env", "SOUL.md", "SELF.md", "voice-phrases.json")
_FOLDERS = ("workspace",)
_LEFT_OUT = {"logs", "images", "status.json", "starts.json", MOVED}
_PRIVATE = 0o600
_HEAD = "soul-backup"
_READ_BYTES = 64 * 1024


def write_backup(home: Home, target: Path, passphrase: str = "") -> int:
    """Write the new file `target`, readable by its owner alone; return how many files it holds.

    Raises:
        UsageError: there is a file already.
        ConfigError: there is no database yet, or another version wrote it.
        StorageError: the disk is full or refuses.

    """
    if target.exists():
        raise UsageError(f"{target} is there already", remedy="Name another file, or move that one away.")
    try:
        with tempfile.TemporaryDirectory(prefix=".soul-backup-", dir=target.parent) as folder:
            unfinished = Path(folder) / "unfinished"  # nobody else can lay anything there
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
            with os.fdopen(handle, "wb") as file:
                count = _write(home, file, passphrase, Path(folder))
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(target)
    except OSError as error:
        raise storage_error(target, error) from error
    return count


def restore_backup(source: Path, root: Path, passphrase: str = "") -> int:
    """Bring a home back in the folder `root`, where none is; return how many files it holds.

    All of it or nothing: it is read whole beside `root` first, and its database is checked.

    Raises:
        UsageError: `source` is no backup, its passphrase is another one, or somebody lives in `root`.
        StorageError: it is damaged, or the disk is full or refuses.

    """
    _refuse_inhabited(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".soul-restore-", dir=root) as name:
            folder = Path(name)
            count = _read(source, folder, passphrase)
            _check(folder / _MEMORY / "soul.db")
            _refuse_inhabited(root)  # reading takes long: another restore may have ended meanwhile
            for path in sorted(folder.iterdir()):
                if path.is_dir() and (root / path.name).exists():
                    shutil.copytree(path, root / path.name, dirs_exist_ok=True)
                else:
                    path.rename(root / path.name)
    except OSError as error:
        raise storage_error(root, error) from error
    return count


def _refuse_inhabited(root: Path) -> None:
    taken = [name for name in (*_ROOT_FILES, _MEMORY) if (root / name).exists()]
    if taken:
        what = f"{root} holds {', '.join(taken)} already"
        raise UsageError(f"{what}: nothing was restored", remedy="Name a folder in which nobody lives, with --home.")


def _write(home: Home, file: IO[bytes], passphrase: str, folder: Path) -> int:
    sealed = SealingWriter(file, passphrase) if passphrase else None
    packed = gzip.GzipFile(fileobj=cast("IO[bytes]", sealed or file), mode="wb", filename="", mtime=0)
    with packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        _add(archive, _HEAD, b"1\n")
        found = list(_files(home))
        for name, path in found:
            with contextlib.suppress(FileNotFoundError):  # it was taken away meanwhile
                _add(archive, name, path.read_bytes())
        copied = folder / home.database.name
        copy(home.database, copied)
        entry = _entry(f"{_MEMORY}/{home.database.name}", copied.stat().st_size)
        with copied.open("rb") as database:
            archive.addfile(entry, database)
    if sealed:
        sealed.close()
    return len(found) + 1


def _files(home: Home) -> Iterator[tuple[str, Path]]:
    """Yield the name in the archive and the path of each file but the database."""
    for name in _ROOT_FILES:
        if (home.root / name).is_file():
            yield name, home.root / name
    for name in _FOLDERS:
        yield from _below(home.root / name, name)
    for name, path in _below(home.memory, _MEMORY):
        is_database = path.name.startswith(home.database.name) and path.parent == home.memory
        if PurePosixPath(name).parts[1] not in _LEFT_OUT and not is_database and path.suffix != ".lock":
            yield name, path


def _below(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, _PRIVATE
    return entry


def _read(source: Path, folder: Path, passphrase: str) -> int:
    """Write the files of a backup into an empty folder; a name that leads out of it is refused."""
    try:
        file = source.open("rb")
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}", remedy="Name a file of `soul backup`.") from None
    with file:
        stream = _opened(file, source, passphrase)
        try:
            with gzip.GzipFile(fileobj=stream, mode="rb") as packed:
                with tarfile.open(fileobj=packed, mode="r|") as archive:
                    names = [_unpack(archive, entry, folder) for entry in archive]
                while packed.read(_READ_BYTES):  # to the end, where the checksum is
                    pass
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise StorageError(f"{source} is no whole backup: {error}", remedy="Take another copy of it.") from None
    if names[:1] != [_HEAD]:
        raise UsageError(f"{source} is no backup of a SOUL", remedy="Name a file that `soul backup` wrote.")
    (folder / _HEAD).unlink()
    return len(names) - 1


def _opened(file: IO[bytes], source: Path, passphrase: str) -> IO[bytes]:
    is_sealed = file.read(len(MAGIC)) == MAGIC
    if is_sealed and not passphrase:
        raise UsageError(f"{source} is sealed with a passphrase", remedy="Give it with --passphrase-file.")
    if is_sealed:
        return cast("IO[bytes]", SealedReader(file, passphrase))
    file.seek(0)
    return file


def _unpack(archive: tarfile.TarFile, entry: tarfile.TarInfo, folder: Path) -> str:
    name = PurePosixPath(entry.name)
    known = name.parts and name.parts[0] in {_HEAD, *_ROOT_FILES, *_FOLDERS, _MEMORY}
    content = archive.extractfile(entry) if entry.isreg() else None
    if not known or ".." in name.parts or content is None:
        raise StorageError(f"The backup holds {entry.name!r}, which is no file of a home", remedy="Do not trust it.")
    path = folder.joinpath(*name.parts)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as written:
        shutil.copyfileobj(content, written)
    return entry.name


def _check(database: Path) -> None:
    """Raise `StorageError` where the copied database is not whole."""
    if not database.exists():
        raise StorageError("The backup holds no database", remedy="Take another copy of it.")
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise StorageError(f"The database in the backup is damaged: {found}", remedy="Take another copy of it.")
