"""The host's console: shows the room's events on a screen, and broadcasts or executes the lines that the host types.

Drawing happens outside the room's turn: a queue is drawn one item per turn of the event loop, so that it never delays
the members. Nothing is stored here; the server's record has every message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import partial

from adapters.space.hosting import LogLevel
from adapters.space.types import SpaceEvent
from common.clock import Clock
from soul.room_host.roster import Roster
from soul.room_host.rows import EventRow, NoteLevel, note, row_of
from soul.room_host.screen import Screen
from soul.terminal.commands import Commands

MOST_UNDRAWN = 2_000
_BEHIND_S = 0.1
_QUIT = {"exit", "quit"}


class HostConsole:
    """A `RoomHost` for a screen. `submit` queues lines of the host, and `serve` processes them one after the other.

    Items are drawn in order, and none while the screen is behind; `draw_all` draws all that wait. If more than
    `MOST_UNDRAWN` wait, the oldest are dropped, and a line tells their number.
    """

    def __init__(self, screen: Screen, roster: Roster, clock: Clock) -> None:
        self._screen = screen
        self._roster = roster
        self._clock = clock
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._undrawn: deque[Callable[[], None]] = deque()
        self._dropped = 0
        self._drawing = False

    def happened(self, event: SpaceEvent) -> None:
        self._roster.follow(event, self._clock.monotonic())
        self._draw_later(partial(self._show_event, event, self._clock.now()))

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        self.note(level, message, detail)

    def note(self, level: NoteLevel, message: str, detail: str = "") -> None:
        """Show a line of the program's own."""
        at = self._clock.now()
        self._draw_later(lambda: self._screen.show(note(level, message, detail, at)))

    def show(self, row: EventRow) -> None:
        """Queue a row."""
        self._draw_later(lambda: self._screen.show(row))

    def print(self, lines: list[str]) -> None:
        """Queue lines of the program's own, which are shown unwrapped."""
        self._draw_later(lambda: self._screen.print(lines))

    def draw_all(self) -> None:
        """Draw the whole queue at once."""
        while self._undrawn:
            self._draw_one()

    def _show_event(self, event: SpaceEvent, at: datetime) -> None:
        row = row_of(event, at)
        if row is not None:
            self._screen.show(row)
        self._screen.refresh()

    def _draw_later(self, draw: Callable[[], None]) -> None:
        if len(self._undrawn) >= MOST_UNDRAWN:
            self._undrawn.popleft()
            self._dropped += 1
        self._undrawn.append(draw)
        if not self._drawing:
            self._drawing = True
            asyncio.get_running_loop().call_soon(self._draw_on)

    def _draw_on(self) -> None:
        self._drawing = False
        if self._screen.is_behind:
            self._drawing = True
            asyncio.get_running_loop().call_later(_BEHIND_S, self._draw_on)
            return
        self._draw_one()
        if self._undrawn:
            self._drawing = True
            asyncio.get_running_loop().call_soon(self._draw_on)

    def _draw_one(self) -> None:
        if self._dropped:
            missed, self._dropped = self._dropped, 0
            text = f"{missed:,} lines came too fast to be shown"
            self._screen.show(note("warn", text, "the room's record has them", self._clock.now()))
        if self._undrawn:
            self._undrawn.popleft()()

    def submit(self, line: str) -> None:
        """Queue a line that the host typed."""
        self._typed.put_nowait(line)

    async def serve(self, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        """Process the host's lines until `ended` is set. `say` broadcasts a message."""
        while not ended.is_set():
            line = await self._typed.get()
            await self._process(line, commands, say, ended)
            self._typed.task_done()

    async def idle(self) -> None:
        """Wait until every queued line has been processed."""
        await self._typed.join()

    async def _process(self, line: str, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        if line.lower() in _QUIT:
            ended.set()
        elif line.startswith("/"):
            await self._execute(commands, line)
        else:
            say(line)

    async def _execute(self, commands: Commands, line: str) -> None:
        lines, problem, remedy = await commands.obey(line)
        self.print(list(lines))
        if problem:
            self.note("error", problem, remedy)
