"""A keeper of SELF.md in a home of its own, with a real journal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.identity.entries import DOCUMENTS, SELF, HeldEdit, Version
from modules.services.identity.history import SelfHistory
from modules.services.identity.keeper import SelfKeeper
from tests.fresh_database import open_database

BORN = "# Rowan\n\nI'm rowan.\n\n## Voice\n\nPlain and warm, and never in a hurry.\n\n## Values\n\n- Attention.\n"


@dataclass
class SelfHome:
    """A home with SELF.md, its keeper, and what the journal and the console say about it."""

    home: Home
    keeper: SelfKeeper
    clock: FakeClock
    journal: Journal
    console: SilentConsole

    @property
    def keepers(self) -> dict[str, SelfKeeper]:
        """The keeper of each document."""
        make = partial(SelfKeeper, home=self.home, clock=self.clock, journal=self.journal, redactor=Redactor())
        return {SELF: self.keeper, **{name: make(document=name) for name in DOCUMENTS if name != SELF}}

    @property
    def text(self) -> str:
        return self.home.self_md.read_text()

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in (self.home.memory / "self-history").glob("[!.]*"))

    @property
    def history(self) -> SelfHistory:
        return SelfHistory(self.home)

    @property
    def versions(self) -> list[Version]:
        """All versions of SELF.md, newest first."""
        with self.history.alone() as history:
            return history.versions()

    @property
    def texts(self) -> list[str]:
        """The texts of all versions, newest first."""
        with self.history.alone() as history:
            return [history.read(version).decode() for version in history.versions()]

    @property
    def held(self) -> HeldEdit | None:
        with self.history.alone() as history:
            return history.held()

    def find(self, name: str) -> Version | None:
        with self.history.alone() as history:
            return history.find(name)

    async def told(self) -> list[dict[str, Any]]:
        """Return the data of each decision in the journal, oldest first."""
        return [stored.entry.data for stored in reversed(await self.journal.recent(50, kinds=["decision"]))]


@asynccontextmanager
async def open_self_home(root: Path) -> AsyncIterator[SelfHome]:
    """Open a home with a SELF.md that nobody has changed yet."""
    home, clock, console, redactor = Home.at(root), FakeClock(), SilentConsole(), Redactor(["hunter2-hunter2"])
    home.self_md.write_text(BORN)
    database = await open_database(home.database)
    journal = Journal(database, console, clock, redactor)
    yield SelfHome(
        home, SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor), clock, journal, console
    )
    await database.close()
