"""A plain terminal: one line per event, and the lines that the owner types.

A separate thread writes the text, so that a reader that stops does not block the program.
"""

import asyncio
import io
import os
import select
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO, cast

from rich.console import Console as RichConsole
from rich.text import Text

from common.clock import Clock, local
from common.wording import LineKind, told_reason
from soul.terminal.output import printable, visible
from soul.terminal.wording import LOOKS, is_of_room, told_line

MOST_WAITING_BYTES = 1024 * 1024
_BEHIND_BYTES = 16 * 1024


class Outlet(io.TextIOBase):
    """Writes to `stream` in order, as soon as the stream takes it, without blocking; `finish` waits for it.

    If more than `MOST_WAITING_BYTES` wait, the oldest text is dropped. If the stream is gone, all text is dropped.
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
        """Whether so much text waits that more should be written later."""
        return self._bytes > _BEHIND_BYTES

    def take_lost(self) -> bool:
        """Return whether text was dropped since the last call."""
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
        """Do nothing: the thread writes by itself."""

    def finish(self, seconds: float) -> None:
        """Wait until all text is written, at most `seconds`; what is written later is dropped."""
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes, seconds)
            self._ended = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (data := self._next()) is not None:
            try:
                self._put(data)
            except OSError:
                # NOTE(self): the reader of our output is gone; the room's record has every word.
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


_INDENT, _LONGEST_COLUMN, _BOX_COLUMNS, _LEAST_COLUMNS, _ENDLESS = 2, 24, 76, 20, 100_000


class PlainConsole:
    """Writes `HH:MM:SS icon label message detail`; colours and wrapping between words only on a terminal."""

    def __init__(self, clock: Clock, *, timezone: str = "", file: TextIO | Outlet | None = None) -> None:
        self._clock = clock
        self._timezone = timezone
        self._file = file
        self._out = RichConsole(file=cast("TextIO | None", file), highlight=False, soft_wrap=True, markup=False)
        self._hides_rooms: Callable[[], bool] = lambda: False

    @contextmanager
    def hiding_rooms(self, during: Callable[[], bool]) -> Iterator[None]:
        """Hide lines about rooms, except warnings and errors, while `during` returns True."""
        self._hides_rooms = during
        try:
            yield
        finally:
            self._hides_rooms = lambda: False

    def line(self, kind: LineKind, message: str, detail: str = "") -> None:
        if isinstance(self._file, Outlet) and self._file.take_lost():
            self._write("warn", "Lines before this one were left out, for nobody read them", "the log has them")
        if is_of_room(message) and kind not in {"warn", "error"} and self._hides_rooms():
            return
        self._write(kind, message, detail)

    def _write(self, kind: LineKind, message: str, detail: str) -> None:
        icon, label, style = LOOKS[kind]
        message, _, words = message.partition(": ") if kind == "said" else (message, "", "")
        head = Text(f"  {local(self._clock.now(), self._timezone):%H:%M:%S} ")
        head.append(f"{icon} {label:<7} ", style=style)
        text = Text(printable(told_line(message)))
        if detail:
            text.append(f"  {printable(told_reason(detail))}", style="dim")
        self._print(text, head)
        if words:
            from soul.terminal.panel import boxed  # noqa: PLC0415 - takes time to load, and is needed after a while

            self.show(boxed(printable(words), min(_BOX_COLUMNS, self._columns() - _INDENT)))

    def say(self, name: str, text: str) -> None:
        """Show an answer to the owner, with its paragraphs, lists and code as they are."""
        for line in ("", *f"{printable(name)}: {text.strip()}".splitlines(), ""):
            words = visible(line).lstrip()
            self._print(Text(words, style="bold"), Text(" " * (len(visible(line)) - len(words))))

    def show(self, lines: Iterable[str]) -> None:
        """Show lines as they are, for example a list."""
        for line in lines:
            head, words = _first_column(" " * _INDENT + visible(line))
            self._print(Text(words), Text(head))

    def _columns(self) -> int:
        """Return how wide a line may be: the width of a terminal, and practically unlimited elsewhere."""
        return self._out.width if self._out.is_terminal else _ENDLESS

    def _print(self, text: Text, head: Text | None = None) -> None:
        """Print `text` behind `head`, wrapped between words at the width of the terminal, further lines aligned."""
        head = head or Text()
        room = max(self._columns() - head.cell_len, _LEAST_COLUMNS)
        lines = [*text.wrap(self._out, room)] if text.cell_len > room else [text]
        try:
            for number, line in enumerate(lines):
                line.rstrip()
                self._out.print(Text(" " * head.cell_len) + line if number else head + line)
        except (BrokenPipeError, ValueError, OSError):
            # NOTE(self): the reader of our output is gone; the journal has every line, and the SOUL lives on.
            self._out = RichConsole(quiet=True)


def _first_column(line: str) -> tuple[str, str]:
    """Return the first column of a table row with the gap behind it, or only another line's indent; and the rest."""
    indent = line[: len(line) - len(line.lstrip())]
    first, gap, rest = line.lstrip().partition("  ")
    if not gap or len(first) > _LONGEST_COLUMN:
        return indent, line.lstrip()
    return f"{indent}{first}{gap}{' ' * (len(rest) - len(rest.lstrip()))}", rest.lstrip()


async def typed_lines() -> AsyncIterator[str]:
    """Yield the lines that the owner types, trimmed, until the end of input; never block the loop or the process's end.

    Bytes that are not text in the terminal's encoding become replacement characters.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    def put(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(queue.put_nowait, line)

    def read() -> None:
        for line in sys.stdin:
            put(line)
        put(None)

    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    threading.Thread(target=read, name="owner-input", daemon=True).start()
    while (line := await queue.get()) is not None:
        if line.strip():
            yield line.strip()
