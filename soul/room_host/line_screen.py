"""The room without a terminal: each line that comes in is said, each happening goes out as plain text.

So a room can be fed by a pipe, kept by a service manager, and written to a file.
"""

from __future__ import annotations

import asyncio
import sys
from io import TextIOWrapper

from soul.room_host.rows import Row, plain_lines
from soul.room_host.screen import OnLine
from soul.terminal.outlet import Outlet
from soul.terminal.plain import typed_lines
from soul.terminal.text import strip_control


class LineScreen:
    """Plain lines. `until_eof`: the end of the input is the host's leave; else the room stays open without words."""

    def __init__(self, out: Outlet, *, until_eof: bool, timezone: str = "") -> None:
        self._until_eof = until_eof
        self._timezone = timezone
        self._out = out
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    @property
    def is_behind(self) -> bool:
        return self._out.is_behind

    def show(self, row: Row) -> None:
        self._write(plain_lines(row, self._timezone))

    def print(self, lines: list[str]) -> None:
        self._write([strip_control(line) for line in lines])

    def refresh(self) -> None:
        """Nothing stands below the lines."""

    async def run(self, submit: OnLine) -> None:
        async for line in typed_lines():
            submit(line)
        if not self._until_eof:
            await asyncio.Event().wait()

    def _write(self, lines: list[str]) -> None:
        self._out.write("".join(f"{line}\n" for line in lines))
