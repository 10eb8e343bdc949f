"""Text on its way to a terminal, a pipe or a file, written by a thread of its own: a reader that stops holds up nobody.

A pipe that nobody reads, or a terminal that is held with Ctrl-S, lets a write wait for as long as it likes.
"""

from __future__ import annotations

import io
import os
import select
import threading
from collections import deque
from typing import TextIO

MOST_WAITING_BYTES = 1024 * 1024
_BEHIND_BYTES = 16 * 1024


class Outlet(io.TextIOBase):
    """What is written here goes to `stream` as soon as it takes it, in order; `close` waits for it for a moment.

    Where more than `MOST_WAITING_BYTES` wait, what has waited longest is let go. A stream that is gone takes nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._file = stream.fileno()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._lost = False
        self._changed = threading.Condition()
        self._ended = False
        stream.flush()
        threading.Thread(target=self._work, name="outlet", daemon=True).start()

    @property
    def is_behind(self) -> bool:
        """Whether so much waits that it is better to write later."""
        return self._bytes > _BEHIND_BYTES

    def take_lost(self) -> bool:
        """Whether anything was let go since this was asked last."""
        with self._changed:
            lost, self._lost = self._lost, False
        return lost

    def fileno(self) -> int:
        return self._file

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        data = text.encode(self._stream.encoding or "utf-8", "replace")
        with self._changed:
            if not self._ended and data:
                self._waiting.append(data)
                self._bytes += len(data)
                while self._bytes > MOST_WAITING_BYTES and len(self._waiting) > 1:
                    self._bytes -= len(self._waiting.popleft())
                    self._lost = True
                self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """What is written leaves by itself."""

    def finish(self, seconds: float) -> None:
        """Wait until all is out, at most so long; what is written later is let go."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, seconds)
            self._ended = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (data := self._next()) is not None:
            try:
                self._put(data)
            except OSError:
                # NOTE(self): the reader of our output went away; the room's record has every word.
                self._give_up()
                return
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            return self._waiting.popleft() if self._waiting else None

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._file, left) :]
            except BlockingIOError:
                select.select([], [self._file], [])

    def _give_up(self) -> None:
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._bytes = 0
            self._changed.notify_all()
