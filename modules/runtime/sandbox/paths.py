"""Which files the SOUL may read and write by itself, and the doing of it.

A path is judged where it really leads, links resolved; then it is opened folder by folder without following any, so
that a link put there a moment later leads nowhere. Writes replace the file in one step, and a crash leaves the old one.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from modules.runtime.home import Home

WORK_REPOS = ".workrepos"
MAX_READ_BYTES = 1024 * 1024

logger = logging.getLogger(__name__)


def is_path_safe(path: Path, home: Home) -> bool:
    """Whether `path` lies in the home or its memory, and is none of the files that hold secrets."""
    return _readable(_real(path, home), home)


def is_writable_path(path: Path, home: Home) -> bool:
    """Whether the SOUL may write there: memory but for database and store, work repositories, voice phrases.

    SELF.md is written by `SelfKeeper` only; SOUL.md, the settings and the code are never written.
    """
    return _writable(_real(path, home), home)


def safe_read_file(path: Path, home: Home) -> str | None:
    """The text of a file of at most 1 MiB; None if it may not be read, cannot be, or is no text."""
    real = _real(path, home)
    if not _readable(real, home):
        logger.warning("Not read, out of bounds: %s", path)
        return None
    try:
        with _folder_of(real, home, make=False) as folder:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(real.name, flags, dir_fd=folder), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(MAX_READ_BYTES + 1)
        return data.decode() if len(data) <= MAX_READ_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None


def safe_write_file(path: Path, text: str, home: Home) -> bool:
    """Write a text file, parents included; False if it may not be written or cannot be."""
    real = _real(path, home)
    if not _writable(real, home):
        logger.warning("Not written, out of bounds: %s", path)
        return False
    temporary = f".{real.name}.{secrets.token_hex(6)}"
    try:
        with _folder_of(real, home, make=True) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            try:
                with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as file:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, real.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
    except OSError as error:
        logger.warning("Not written: %s (%s)", path, error.strerror)
        return False
    return True


def _real(path: Path, home: Home) -> Path:
    """Where a path leads, relative ones from the home."""
    return (home.root / path).resolve()


def _readable(real: Path, home: Home) -> bool:
    inside = real.is_relative_to(home.root) or real.is_relative_to(home.memory)
    return inside and real not in {home.env, home.session}


def _writable(real: Path, home: Home) -> bool:
    if not _readable(real, home):
        return False
    if home.memory in real.parents:
        return not real.name.startswith(home.database.name) and home.store not in real.parents
    return home.root / WORK_REPOS in real.parents or real == home.voice_phrases


@contextmanager
def _folder_of(real: Path, home: Home, *, make: bool) -> Iterator[int]:
    """The folder of a file, reached from its base without following a link."""
    base = home.memory if real.is_relative_to(home.memory) else home.root
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in real.relative_to(base).parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)
