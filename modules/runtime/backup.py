"""Writes a home into one sealed file, and restores a home from it: all of it or nothing, even after a kill.

A backup is unpacked into a folder of its own within the new home and checked there. One rename decides: before it
nothing is restored, after it the next start moves what is still to be moved. A backup is untrusted: its size, its
number of files and their names are limited.
"""

import contextlib
import fcntl
import gzip
import hashlib
import io
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Self, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from common.constants import LEFT_FREE_BYTES, TEXT_MAX_BYTES
from common.errors import HomeLocked, StorageError, UsageError
from common.files import must_be_new, read_bounded, storage_error, sync, write_atomic
from modules.runtime.database.copies import is_marked_restored, mark_restored
from modules.runtime.database.file import COPIES, copy, damaged, find_damage
from modules.runtime.home import MOVED, RESTORED, Home

MAGIC = b"soul-sealed-1\n"

_SALT_BYTES, _TAG_BYTES = 16, 16
_PIECE_BYTES = 64 * 1024
_SCRYPT = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}


class SealingWriter:
    """Encrypts what is written to it into `file`; `close` marks the end and leaves `file` open."""

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        salt = os.urandom(_SALT_BYTES)
        self._file = file
        self._cipher = _cipher(passphrase, salt)
        self._number = 0
        self._waiting = bytearray()
        file.write(MAGIC + salt)

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) > _PIECE_BYTES:  # which piece is the last is known only at the end
            self._put(bytes(self._waiting[:_PIECE_BYTES]), is_last=False)
            del self._waiting[:_PIECE_BYTES]
        return len(data)

    def close(self) -> None:
        self._put(bytes(self._waiting), is_last=True)

    def _put(self, piece: bytes, *, is_last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, is_last=is_last), piece, None))
        self._number += 1


class SealedReader:
    """Reads what `SealingWriter` wrote to `file`, which is positioned behind `MAGIC`.

    Raises:
        UsageError: the passphrase is wrong, or the beginning was changed.
        StorageError: the file was changed, or is not whole.

    """

    def __init__(self, file: IO[bytes], passphrase: str) -> None:
        self._file = file
        self._cipher = _cipher(passphrase, file.read(_SALT_BYTES))
        self._number = 0
        self._next = file.read(_PIECE_BYTES + _TAG_BYTES)
        self._ready = bytearray()
        if not self._next:
            raise _changed()

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and self._next:
            self._open_piece()
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken

    def _open_piece(self) -> None:
        piece, self._next = self._next, self._file.read(_PIECE_BYTES + _TAG_BYTES)
        try:
            self._ready += self._cipher.decrypt(_nonce(self._number, is_last=not self._next), piece, None)
        except InvalidTag:
            if self._number == 0:
                problem = "The passphrase does not open this backup, or its beginning was changed"
                raise UsageError(problem, remedy="Give the passphrase with which it was made.") from None
            raise _changed() from None
        self._number += 1


def _changed() -> StorageError:
    return StorageError("The backup was changed or is not whole", remedy="Take another copy of it.")


def _cipher(passphrase: str, salt: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(hashlib.scrypt(passphrase.encode(), salt=salt, **_SCRYPT))


def _nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([is_last])


MEMORY = ".memory"
ROOT_FILES = (".env", "SOUL.md", "SELF.md", "voice-phrases.json")
FOLDERS = ("workspace",)
HEAD = "soul-backup"
"""The name of the first entry, which identifies a backup."""
PRIVATE = 0o600

_LEFT_OUT = {"logs", "images", "starts.json", "sleep.json", "watcher.json", "watch_session.json", MOVED, COPIES}
_WAITING_PICTURES = "images/waiting"
_POSTED_PICTURES = ("post_log.jsonl", "arena_posted.json", "web_images_posted.json")


def write_backup(home: Home, target: Path, passphrase: str = "", *, ends: bool = False) -> int:
    """Write the new file `target`, readable by its owner alone; return how many files it holds.

    With `ends` nobody lives in the home after it, so the database is not marked as an earlier copy.

    Raises:
        UsageError: the file exists already, or its folder does not.
        ConfigError: there is no database yet, or a newer version wrote it.
        StorageError: the database is damaged, or the disk is full or refuses.

    """
    must_be_new(target)
    try:
        with tempfile.TemporaryDirectory(prefix=".soul-backup-", dir=target.parent) as folder:
            unfinished = Path(folder) / "unfinished"  # nobody else can put anything there
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
            with contextlib.suppress(FileNotFoundError):  # it was deleted meanwhile
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
            with contextlib.suppress(FileNotFoundError):  # it was deleted, being too old to be posted
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
    """Yield the name in the archive and the path of each file that is copied after the database."""
    yield from _below(home.memory / _WAITING_PICTURES, f"{MEMORY}/{_WAITING_PICTURES}")
    for name in _POSTED_PICTURES:
        if (home.memory / name).is_file():
            yield f"{MEMORY}/{name}", home.memory / name


def _below(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files in a folder; a link counts as the file to which it leads, unless that lies elsewhere."""
    inside = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.resolve().is_relative_to(inside):
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, PRIVATE
    return entry


GIB = 1024**3
MIB = 1024**2

_UNPACKING = ".soul-restore"
_MOST_FILES = 200_000
_MOST_HEADER_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024
_PLAIN = {tarfile.REGTYPE, tarfile.AREGTYPE}
_MEMORY_DIR = re.compile(r"^[ \t]*(?:export[ \t]+)?MEMORY_DIR[ \t]*=", re.MULTILINE)
_DISTRUST = "Do not trust it."
_ANOTHER_COPY = "Take another copy of it."


@dataclass(frozen=True, slots=True)
class RestoredHome:
    """The result of a restore.

    Attributes:
        files: how many files were restored.
        left_memory_dir: whether MEMORY_DIR was commented out, because what was there lies in `.memory` now.
        completed: whether an earlier restore, which had been interrupted, was completed instead; nothing else was read.
        is_moved: whether the SOUL was moved here: then the home where it was does not wake any more.

    """

    files: int
    left_memory_dir: bool = False
    completed: bool = False
    is_moved: bool = False


def restore_backup(source: Path, root: Path, passphrase: str, *, most_bytes: int) -> RestoredHome:
    """Restore a home into the folder `root`, which must hold none; `most_bytes` limits the unpacked size.

    Raises:
        UsageError: `source` is no backup, the passphrase is wrong, or somebody lives in `root`.
        HomeLocked: another restore is running there.
        StorageError: it is damaged or larger than allowed, or the disk is full or refuses.

    """
    try:
        with _folder(root), _alone(root):
            if _complete(root):
                return RestoredHome(0, completed=True)
            _refuse_inhabited(root)
            folder = root / _UNPACKING
            shutil.rmtree(folder, ignore_errors=True)
            try:
                folder.mkdir(mode=0o700)
                files = _read(source, folder, passphrase, most_bytes)
                _check(folder / MEMORY / "soul.db")
                left, is_moved = _leave_memory_dir(folder / ".env"), not is_marked_restored(folder / MEMORY / "soul.db")
                for path in (*folder.rglob("*"), folder):
                    sync(path)
                _refuse_inhabited(root)  # reading takes long: somebody may have moved in meanwhile
                folder.rename(root / RESTORED)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            _complete(root)
    except OSError as error:
        raise storage_error(root, error) from error
    return RestoredHome(files, left, is_moved=is_moved)


@contextlib.contextmanager
def _folder(root: Path) -> Iterator[None]:
    """Create the folder; after an error, delete the folders that were created for it and are still empty."""
    made = [path for path in (root, *root.parents) if not path.exists()]
    root.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for path in made:
                path.rmdir()
        raise


def complete_restore(root: Path) -> bool:
    """Move what an interrupted restore had still to move; return whether there was such a restore.

    Raises:
        HomeLocked: the restore is still running.
        StorageError: what is to be moved is there already, or the disk refuses.

    """
    if not (root / RESTORED).is_dir():
        return False
    try:
        with _alone(root):
            return _complete(root)
    except OSError as error:
        raise storage_error(root, error) from error


def _complete(root: Path) -> bool:
    folder = root / RESTORED
    if not folder.is_dir():
        return False
    for path in sorted(folder.iterdir()):
        if _is_taken(root / path.name):
            raise StorageError(
                f"A restore into {root} was cut off, and {path.name} came there since",
                remedy=f"Move that away and start again; or delete {folder}, and restore elsewhere.",
            )
        path.rename(root / path.name)
    sync(root)
    folder.rmdir()
    return True


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Lock `root` against another restore. The system releases the lock when the process ends."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HomeLocked(f"Another restore into {root} is at work", remedy="Let it end first.") from None
        except OSError:
            pass  # a file system without such locks
        yield
    finally:
        os.close(handle)


def _refuse_inhabited(root: Path) -> None:
    if taken := [name for name in (*ROOT_FILES, MEMORY, *FOLDERS) if _is_taken(root / name)]:
        what = f"{root} holds {', '.join(taken)} already"
        raise UsageError(f"{what}: nothing was restored", remedy="Name a folder in which nobody lives, with --home.")


def _is_taken(path: Path) -> bool:
    """Return whether anything is there but an empty folder, which a rename replaces."""
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir() or any(path.iterdir()))


def _leave_memory_dir(env: Path) -> bool:
    text = read_bounded(env, TEXT_MAX_BYTES).decode(errors="replace") if env.exists() else ""
    if not _MEMORY_DIR.search(text):
        return False
    write_atomic(env, _MEMORY_DIR.sub(r"#\g<0>", text), mode=PRIVATE)
    return True


class _Limited:
    """A stream from which at most `most` bytes can be read."""

    def __init__(self, stream: gzip.GzipFile, most: int) -> None:
        self._stream = stream
        self._most = self._left = most

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise StorageError(
                f"The backup holds more than {self._most / GIB:.1f} GiB",
                remedy=f"{_DISTRUST} If it is yours: --max-gib allows more.",
            )
        return data


class _PlainEntry(tarfile.TarInfo):
    """An entry of a backup: a file, or the long name of one. Every other kind is refused before it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        is_name = entry.type == tarfile.XHDTYPE and entry.size <= _MOST_HEADER_BYTES
        if not is_name and entry.type not in _PLAIN:
            raise _no_file(entry.name)
        return entry


def _no_file(name: str) -> StorageError:
    return StorageError(f"The backup holds {name!r}, which is no file of a home", remedy=_DISTRUST)


def _read(source: Path, folder: Path, passphrase: str, most_bytes: int) -> int:
    """Write the files of a backup into an empty folder, and return how many; refuse a name that leads out of it."""
    try:
        file = source.open("rb")
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}", remedy="Name a file of `soul backup`.") from None
    count, head = 0, ""
    with file:
        stream = _opened(file, source, passphrase)
        try:
            with gzip.GzipFile(fileobj=stream, mode="rb") as packed:
                limited = cast("IO[bytes]", _Limited(packed, most_bytes))
                with tarfile.open(fileobj=limited, mode="r|", tarinfo=_PlainEntry) as archive:
                    for entry in archive:
                        name = _unpack(archive, entry, folder)
                        count, head = count + 1, head or name
                        if count > _MOST_FILES:
                            raise StorageError(f"The backup holds more than {_MOST_FILES} files", remedy=_DISTRUST)
                while limited.read(_READ_BYTES):  # to the end, where the checksum is
                    pass
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, OverflowError):
            if head:
                raise StorageError(f"{source} is damaged or was cut off", remedy=_ANOTHER_COPY) from None
    if head != HEAD:
        raise UsageError(f"{source} is no backup of a SOUL", remedy="Name a file that `soul backup` wrote.")
    (folder / HEAD).unlink()
    return count - 1


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
    first, *rest = name.parts or [""]
    is_known = first in {HEAD, *ROOT_FILES} if not rest else first in {*FOLDERS, MEMORY}
    content = archive.extractfile(entry) if entry.isreg() else None
    is_sparse = entry.sparse is not None
    if not is_known or is_sparse or ".." in rest or "\0" in entry.name or content is None:
        raise _no_file(entry.name)
    free = shutil.disk_usage(folder).free
    if free - entry.size < LEFT_FREE_BYTES:
        needed = -(-(entry.size + LEFT_FREE_BYTES) // MIB)
        raise StorageError(
            f"Not enough disk space to restore {entry.name}: {needed} MiB needed, {free // MIB} MiB free",
            remedy=f"Free some disk space: {LEFT_FREE_BYTES // MIB} MiB of it stay free after the restore.",
        )
    path = folder.joinpath(*name.parts)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as written:
        shutil.copyfileobj(content, written)
    return entry.name


def _check(database: Path) -> None:
    """Raise `StorageError` if the restored database is missing or damaged."""
    if not database.exists():
        raise StorageError("The backup holds no database", remedy=_ANOTHER_COPY)
    if damage := find_damage(database):
        raise StorageError(f"The database in the backup is damaged: {damage}", remedy=_ANOTHER_COPY)
