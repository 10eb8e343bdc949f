"""Looks for secrets where none belong: in SOUL.md, SELF.md, and the text files and logs under `.memory`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from common.redact import Redactor
from modules.runtime.home import Home

_MAX_FILE_BYTES = 1024 * 1024
_MAX_BYTES = 3 * 1024 * 1024
_PEEK_BYTES = 1024


def leaks(home: Home, redactor: Redactor) -> tuple[list[Path], int]:
    """The files that hold one, and how many were not read through: of a large file the end is read.

    SOUL.md and SELF.md come first, then the newest. The session file is left out: it is kept for its tokens.
    """
    found: list[Path] = []
    unread, left = 0, _MAX_BYTES
    documents = [path for path in (home.soul, home.self_md) if path.is_file()]
    for path in (*documents, *sorted(_texts(home), key=_age)):
        data, whole = _end_of(path, min(_MAX_FILE_BYTES, left))
        left -= len(data)
        unread += not whole
        if b"\0" not in data[:_PEEK_BYTES] and redactor.finds(data.decode(errors="replace")):
            found.append(path)
    return found, unread


def _texts(home: Home) -> Iterator[Path]:
    for folder, _, names in os.walk(home.memory):
        for name in names:
            path = Path(folder, name)
            is_database = name.startswith(home.database.name)
            if path != home.session and not is_database and path.is_file() and not path.is_symlink():
                yield path


def _end_of(path: Path, most: int) -> tuple[bytes, bool]:
    """At most the last `most` bytes, and whether that is all."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            return file.read(most), size <= most
    except OSError:
        return b"", False


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
