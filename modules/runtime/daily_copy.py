"""Copies the database once a day, and first removes from the file what was deleted on purpose."""

import asyncio
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import Clock, local
from common.errors import SoulError
from modules.runtime.database import copies
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry

_RETRY_S = 3600.0


@dataclass(slots=True)
class DailyCopy:
    """Writes a copy of the database for each day of the SOUL's calendar, while others read and write it."""

    database: Database
    path: Path
    journal: Journal
    clock: Clock
    timezone: str = ""
    _not_before: float = field(default=float("-inf"), init=False)
    _told: str = field(default="", init=False)

    async def write(self) -> None:
        """Write today's copy if there is none, after a rewrite that is due.

        A failure is reported once, retried an hour later, and stops nothing.
        """
        day = f"{local(self.clock.now(), self.timezone):%Y-%m-%d}"
        if self.clock.monotonic() < self._not_before:
            return
        try:
            await self.database.rewrite_if_due()
            if not copies.path_of(self.path, day).exists():
                await asyncio.to_thread(copies.write, self.path, day)
        except (OSError, sqlite3.Error, SoulError) as error:
            self._not_before = self.clock.monotonic() + _RETRY_S
            if self._told != str(error):
                self._told = str(error)
                summary = "No copy of the database was made today; tried again every hour"
                await self.journal.record(Entry("error", "copies", summary, line="warn", reason=self._told))
        else:
            self._told = ""
