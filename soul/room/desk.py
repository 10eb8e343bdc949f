"""The host's desk: what the room tells is noted and shown, what the host types is said or obeyed.

Nothing is kept here: the server's record has every word, and a new start has an empty room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.space.hosting import LogLevel
from adapters.space.types import Event
from common.clock import Clock
from common.errors import SoulError
from soul.room.company import Company
from soul.room.rows import NoteLevel, note, row_of
from soul.room.screen import Screen
from soul.terminal.commands import Commands

_QUIT = {"exit", "quit"}


class Desk:
    """A `RoomHost` for a screen. `heard` queues what the host typed; `serve` works it off, one after the other."""

    def __init__(self, screen: Screen, company: Company, clock: Clock) -> None:
        self._screen = screen
        self._company = company
        self._clock = clock
        self._typed: asyncio.Queue[str] = asyncio.Queue()

    def happened(self, event: Event) -> None:
        self._company.follow(event, self._clock.monotonic())
        row = row_of(event, self._clock.now())
        if row is not None:
            self._screen.show(row)
        self._screen.refresh()

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        self.note(level, message, detail)

    def note(self, level: NoteLevel, message: str, detail: str = "") -> None:
        """A line of the program's own."""
        self._screen.show(note(level, message, detail, self._clock.now()))

    def heard(self, line: str) -> None:
        """The host typed a line."""
        self._typed.put_nowait(line)

    async def serve(self, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        """Do what the host asks until the room is to be closed."""
        while not ended.is_set():
            line = await self._typed.get()
            await self._do(line, commands, say, ended)
            self._typed.task_done()

    async def idle(self) -> None:
        """Wait until all that was typed is worked off."""
        await self._typed.join()

    async def _do(self, line: str, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        if line.lower() in _QUIT:
            ended.set()
        elif line.startswith("/"):
            await self._obey(commands, line)
        else:
            say(line)

    async def _obey(self, commands: Commands, line: str) -> None:
        try:
            self._screen.print(list(await commands.answer(line)))
        except SoulError as error:
            self.note("error", str(error), error.remedy)
        except Exception as error:
            self.note("error", line, f"{type(error).__name__}: {error}")
