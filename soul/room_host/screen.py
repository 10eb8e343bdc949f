"""The interface of a screen of the room's program, and its implementation without a terminal: plain lines in and out.

With plain lines a room can be fed by a pipe, run by a service manager, and written to a file.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import Protocol

from soul.room_host.panel import EventRow, plain_lines
from soul.terminal.panel import strip_control
from soul.terminal.plain import Outlet, typed_lines

OnLine = Callable[[str], None]
"""Receives each line that the host has finished, trimmed and not empty."""


class Screen(Protocol):
    """Shows rows, and reads what the host types."""

    @property
    def is_behind(self) -> bool:
        """Whether so much output is not written yet that more should wait."""
        ...

    def show(self, row: EventRow) -> None:
        """Show a row below those shown before; also before and after `run`."""
        ...

    def print(self, lines: list[str]) -> None:
        """Show lines of the program, unwrapped, such as a banner or a list."""
        ...

    def refresh(self) -> None:
        """Redraw who is present and what they do."""
        ...

    async def run(self, on_line: OnLine, commands: Sequence[str] = ()) -> None:
        """Read lines until the host leaves; cancelled when the program ends for another reason.

        `commands` are the names of the slash commands, without the slash.
        """
        ...


class LineScreen:
    """Plain lines. `until_eof`: the end of the input closes the room; otherwise the room stays open."""

    def __init__(self, out: Outlet, *, until_eof: bool) -> None:
        self._until_eof = until_eof
        self._out = out
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    @property
    def is_behind(self) -> bool:
        return self._out.is_behind

    def show(self, row: EventRow) -> None:
        self._write(plain_lines(row))

    def print(self, lines: list[str]) -> None:
        self._write([strip_control(line) for line in lines])

    def refresh(self) -> None:
        """Do nothing: there is no panel to redraw."""

    async def run(self, on_line: OnLine, commands: Sequence[str] = ()) -> None:
        async for line in typed_lines():
            on_line(line)
        if not self._until_eof:
            await asyncio.Event().wait()

    def _write(self, lines: list[str]) -> None:
        self._out.write("".join(f"{line}\n" for line in lines))
