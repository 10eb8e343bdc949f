"""The record of a room on disk: one JSON line for each entry in `data/chat.jsonl`, with rotated older parts.

An entry is written to the operating system when `append` returns, so it survives a kill of the process. A rotation that
was interrupted is completed at the next start; a partial last line is terminated and skipped.
"""

import os
import re
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

from adapters.space.types import LogEntry
from adapters.space.wire import BadJson, decode_entry, encode_entry, parse_json
from common.errors import StorageError
from common.files import storage_error, write_atomic

SPACE_LOG_ROTATION_MAX_BYTES = 52_428_800

KEPT_PARTS = 5
_CHUNK_BYTES = 64 * 1024
_MOST_UNREADABLE = 1_000
_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
_ID_BYTES = 16


def _to_stderr(message: str) -> None:
    sys.stderr.write(f"{message}\n")


class ChatLog:
    """The record under `base_dir`, written by one process.

    Args:
        base_dir: the room's folder; `data/` in it is created.
        max_bytes: the size at which a part is rotated.
        report: called with one line for each disk error, on the thread of the error; only `open` raises.

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
        """Open the record for writing. Raises `StorageError` if that is impossible."""
        try:
            self._opened()
        except OSError as error:
            raise storage_error(self.path, error) from error

    def room_id(self) -> str:
        """Return the id of the room, made at the first call and stored beside the record; "" if it cannot be stored.

        It is independent of the room's address. An id that is not stored would change at the next start.
        """
        path = self._folder / "room-id"
        try:
            kept = path.read_bytes().decode(errors="replace").strip() if path.exists() else ""
            if _ID.fullmatch(kept):
                return kept
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = secrets.token_urlsafe(_ID_BYTES)
            write_atomic(path, f"{made}\n")
        except OSError as error:
            self._complain(error)
            return ""
        except StorageError as error:
            self._report(f"[space log] {error}")
            return ""
        return made

    def append(self, entry: LogEntry) -> None:
        """Append one entry. Never raises; disk errors go to `report`."""
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
        """Return the last `limit` entries, oldest first; up to 1,000 more that cannot be read are skipped."""
        most = max(limit, 0)
        parts = (self.path, self._part(1))
        lines = islice(chain.from_iterable(_lines_backwards(part) for part in parts), most + _MOST_UNREADABLE)
        readable = (entry for line in lines if (entry := _entry(line)) is not None)
        try:
            return list(islice(readable, most))[::-1]
        except OSError as error:
            self._complain(error)
            return []

    def close(self) -> None:
        """Close the file; `append` opens it again."""
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
        """Shift the older parts up to the first gap (already shifted ones stay), then move the rotated part to 1."""
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
    """Yield the non-empty lines of a file, last one first; bytes are joined before they are decoded."""
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
