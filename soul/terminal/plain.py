"""A plain terminal: one line per happening, and what the owner types is answered."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO, cast

from rich.console import Console as RichConsole
from rich.text import Text

from common.clock import Clock, local
from common.line_kind import LineKind
from common.wording import told_reason
from soul.terminal.outlet import Outlet
from soul.terminal.output import printable, visible
from soul.terminal.wording import is_of_room, told_line

LOOKS: dict[LineKind, tuple[str, str, str]] = {
    "info": ("○", "note", ""),
    "done": ("✓", "done", "green"),
    "warn": ("◆", "warning", "yellow"),
    "error": ("✗", "error", "red"),
    "act": ("▸", "acts", "cyan"),
    "think": ("•", "thinks", "magenta"),
    "mem": ("★", "memory", "blue"),
    "sys": ("■", "state", "bright_black"),
    "refl": ("◆", "self", "magenta"),
    "mind": ("○", "thinks", "magenta"),
    "queue": ("\u203a", "to do", "cyan"),
    "social": ("♥", "social", "bright_red"),
    "said": ("♥", "social", "bright_red"),
}


_INDENT, _LONGEST_COLUMN, _BOX_COLUMNS, _LEAST_COLUMNS, _ENDLESS = 2, 24, 76, 20, 100_000


class PlainConsole:
    """Writes `HH:MM:SS icon label message detail`; colours, and lines broken between words, only on a terminal."""

    def __init__(self, clock: Clock, *, timezone: str = "", file: TextIO | Outlet | None = None) -> None:
        self._clock = clock
        self._timezone = timezone
        self._file = file
        self._out = RichConsole(file=cast("TextIO | None", file), highlight=False, soft_wrap=True, markup=False)
        self._hides_rooms: Callable[[], bool] = lambda: False

    @contextmanager
    def hiding_rooms(self, during: Callable[[], bool]) -> Iterator[None]:
        """Leave out what is told of rooms, but for warnings and errors, as long as `during` returns True."""
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
            from soul.terminal.text import boxed  # noqa: PLC0415 - takes time to load, and is needed after a while

            self.show(boxed(printable(words), min(_BOX_COLUMNS, self._columns() - _INDENT)))

    def say(self, name: str, text: str) -> None:
        """An answer to the owner."""
        for line in ("", f"{printable(name)}: {printable(text)}", ""):
            self._print(Text(line, style="bold"))

    def show(self, lines: Iterable[str]) -> None:
        """Lines as they are, for example a list."""
        for line in lines:
            head, words = _first_column(" " * _INDENT + visible(line))
            self._print(Text(words), Text(head))

    def _columns(self) -> int:
        """Return how wide a line may be: the width of a terminal, and anything elsewhere."""
        return self._out.width if self._out.is_terminal else _ENDLESS

    def _print(self, text: Text, head: Text | None = None) -> None:
        """Print `text` behind `head`, broken between words where the terminal ends, and each further line below it."""
        head = head or Text()
        room = max(self._columns() - head.cell_len, _LEAST_COLUMNS)
        lines = [*text.wrap(self._out, room)] if text.cell_len > room else [text]
        try:
            for number, line in enumerate(lines):
                line.rstrip()
                self._out.print(Text(" " * head.cell_len) + line if number else head + line)
        except (BrokenPipeError, ValueError, OSError):
            # NOTE(self): the reader of our output went away; the journal has every line, and the SOUL lives on.
            self._out = RichConsole(quiet=True)


def _first_column(line: str) -> tuple[str, str]:
    """Return the first column of a table with the gap behind it, or only the indent of any other line, and the rest."""
    indent = line[: len(line) - len(line.lstrip())]
    first, gap, rest = line.lstrip().partition("  ")
    if not gap or len(first) > _LONGEST_COLUMN:
        return indent, line.lstrip()
    return f"{indent}{first}{gap}{' ' * (len(rest) - len(rest.lstrip()))}", rest.lstrip()


async def typed_lines() -> AsyncIterator[str]:
    """What the owner types, line by line, until end of input. Never blocks the loop or the end of the process.

    What is not text in the terminal's encoding comes as replacement characters.
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
