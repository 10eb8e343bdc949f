"""The record of a room on disk: one JSON line for each entry in `data/chat.jsonl`, older parts beside it.

An entry is with the operating system when `append` returns, so it outlives a kill of the process. A rotation that was
cut short at any step is finished by the next start; a torn last line is closed and passed over.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from adapters.space.types import LogEntry
from adapters.space.wire import decode_entry, encode_entry
from adapters.space.wire_json import BadJson, parse_json
from common.clock import parse_iso_or_none
from common.constants import SPACE_LOG_ROTATION_MAX_BYTES
from common.errors import StorageError
from common.files import storage_error, write_atomic

KEPT_PARTS = 5
_CHUNK_BYTES = 64 * 1024
_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
_ID_BYTES = 16


def _to_stderr(message: str) -> None:
    sys.stderr.write(f"{message}\n")


class ChatLog:
    """The record under `base_dir`, which one process writes.

    Args:
        base_dir: the room's folder; `data/` in it is made.
        max_bytes: a part that grows beyond is put aside.
        report: takes one line whenever the disk refuses, on the thread that met it; only `open` raises.

    """

    def __init__(
        self,
        base_dir: Path,
        *,
        max_bytes: int = SPACE_LOG_ROTATION_MAX_BYTES,
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._folder = base_dir / "data"
        self._max_bytes = max_bytes
        self._report = report
        self._handle: int | None = None
        self._size = 0
        self._torn = False
        try:
            self._finish_rotation()
        except OSError as error:
            self._complain(error)

    @property
    def path(self) -> Path:
        """The part that is being written."""
        return self._folder / "chat.jsonl"

    def open(self) -> None:
        """Open the part that is written, before anybody relies on it. Raises `StorageError`: it cannot be written."""
        try:
            self._opened()
        except OSError as error:
            raise storage_error(self.path, error) from error

    def room_id(self) -> str:
        """The id of the room, made the first time it is asked for and kept beside the record; "" if the disk refuses.

        It stays the same wherever the room listens. An id that cannot be kept would be another one next time, so it is
        none.
        """
        path = self._folder / "room-id"
        try:
            kept = path.read_bytes().decode(errors="replace").strip() if path.exists() else ""
            if _ID.fullmatch(kept):
                return kept
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = secrets.token_urlsafe(_ID_BYTES)
            write_atomic(path, f"{made}\n", mode=0o600)
        except OSError as error:
            self._complain(error)
            return ""
        except StorageError as error:
            self._report(f"[space log] {error}")
            return ""
        return made

    def append(self, entry: LogEntry) -> None:
        """Keep one entry. Never raises for what the disk does."""
        line = encode_entry(entry).encode() + b"\n"
        try:
            handle = self._opened()
            written = os.write(handle, b"\n" + line if self._torn else line)
            self._torn = written < len(line) + self._torn
            self._size += written
            if self._torn:
                self._report(f"[space log] {self.path} took only a part of a line: is the disk full?")
            elif self._size > self._max_bytes:
                self._rotate()
        except OSError as error:
            self._complain(error)

    def get_recent_history(self, limit: int = 200) -> list[LogEntry]:
        """The last `limit` entries, oldest first; lines that cannot be read count, but are left out."""
        parts = (self.path, self._part(1))
        lines = islice(chain.from_iterable(_lines_backwards(part) for part in parts), max(limit, 0))
        try:
            entries = [_entry(line) for line in lines]
        except OSError as error:
            self._complain(error)
            return []
        return [entry for entry in reversed(entries) if entry is not None]

    # NOTE(self): kept for who is to read on from a time it knows; a joiner gets the recent history instead.
    def get_since(self, timestamp: str, limit: int = 200) -> list[LogEntry]:
        """Of the last `2 * limit` entries those strictly later than an ISO-8601 time, at most the last `limit`.

        Nothing is later than a time that cannot be read.
        """
        since = parse_iso_or_none(timestamp)
        if since is None:
            return []
        recent = ((parse_iso_or_none(entry.timestamp), entry) for entry in self.get_recent_history(2 * limit))
        later = [entry for at, entry in recent if at is not None and at > since]
        return later[-limit:] if limit > 0 else []

    def close(self) -> None:
        """Let go of the file; `append` opens it again."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _opened(self) -> int:
        if self._handle is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._size = os.fstat(self._handle).st_size
            self._torn = self._size > 0 and os.pread(self._handle, 1, self._size - 1) != b"\n"
        return self._handle

    def _rotate(self) -> None:
        self._finish_rotation()
        self.close()
        self._move(self.path, self._aside)
        self._finish_rotation()

    def _finish_rotation(self) -> None:
        """Shift the older parts up to the first gap (what was shifted already stays), then put the aside one first."""
        if not self._aside.exists():
            return
        gap = next((number for number in range(1, KEPT_PARTS) if not self._part(number).exists()), KEPT_PARTS)
        for number in range(gap, 1, -1):
            self._move(self._part(number - 1), self._part(number))
        self._move(self._aside, self._part(1))

    def _move(self, source: Path, target: Path) -> None:
        source.replace(target)

    @property
    def _aside(self) -> Path:
        return self._folder / "chat.rotating.jsonl"

    def _part(self, number: int) -> Path:
        return self._folder / f"chat.{number}.jsonl"

    def _complain(self, error: OSError) -> None:
        self._report(f"[space log] {self._folder}: {error.strerror or error}")


def _entry(line: bytes) -> LogEntry | None:
    try:
        return decode_entry(parse_json(line, cut=True))
    except BadJson:
        return None


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """The lines of a file that are not empty, last one first; bytes are put together before they are text."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        position = file.seek(0, os.SEEK_END)
        pieces: deque[bytes] = deque()
        while position > 0:
            size = min(_CHUNK_BYTES, position)
            position = file.seek(position - size)
            first, *lines = file.read(size).split(b"\n")
            if lines:
                pieces.appendleft(lines.pop())
                yield from filter(None, (b"".join(pieces).strip(), *(line.strip() for line in reversed(lines))))
                pieces.clear()
            pieces.appendleft(first)
        yield from filter(None, (b"".join(pieces).strip(),))
