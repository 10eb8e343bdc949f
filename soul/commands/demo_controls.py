"""The owner's hand on the residents of the demo: the same doors that `soul why`, `soul drafts` and `soul pause` use.

Each resident is a process of its own and goes on living meanwhile; nothing is kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from common.clock import SystemClock
from common.errors import SoulError
from common.redact import Redactor
from modules.console import SilentConsole
from modules.control import Control
from modules.database import Database, reading
from modules.home import Home
from modules.journal import why
from modules.journal.journal import Journal
from modules.outbox import approval
from soul.commands.pause import resume
from town.page.controls import Told, ToldStep


@dataclass(frozen=True, slots=True)
class HomeControls:
    """Answers for the SOULs whose homes are given by handle."""

    homes: Mapping[str, Home]

    async def why(self, handle: str, uri: str) -> Told:
        return await asyncio.to_thread(_told, self._home(handle), uri)

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        clock = SystemClock()
        now = clock.now()
        database = await Database.beside(self._home(handle).database)
        try:
            journal = Journal(database, SilentConsole(), clock, Redactor())
            if yes:
                await journal.record_with(lambda connection: approval.approve(connection, draft_id, now))
            else:
                await journal.record_with(lambda connection: approval.reject(connection, draft_id, "", now))
        finally:
            await database.close()

    async def pause(self, handle: str, *, paused: bool) -> None:
        home = self._home(handle)
        if paused:
            Control(home.memory).pause("on the town's page")
        elif not (standing := resume(home)).may_act:
            raise SoulError(f"Still {standing}")

    def _home(self, handle: str) -> Home:
        if handle not in self.homes:
            raise SoulError("Nobody of that name lives here.")
        return self.homes[handle]


def _told(home: Home, uri: str) -> Told:
    with reading(home.database) as connection:
        story = why.story_of(connection, uri)
    if isinstance(story, why.Unknown):
        raise SoulError(story.reason)
    steps = (ToldStep(step.at, step.text, _plain(step.details)) for step in why.steps(story))
    return Told(why.title(story), tuple(steps), why.ending(story))


def _plain(details: tuple[str, ...]) -> tuple[str, ...]:
    """Without bare addresses, which say nothing to a visitor."""
    return tuple(detail for detail in details if not detail.startswith("at://"))
