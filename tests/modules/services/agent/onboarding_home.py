"""A home whose first conversation is still due, with a real database, journal and files."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.agent.onboarding import Onboarding
from modules.services.owner_files import LocalOwnerFiles, OwnerFiles
from tests.fresh_database import open_database


@dataclass
class OnboardingHome:
    """One life in that home."""

    database: Database
    console: SilentConsole
    onboarding: Onboarding

    async def marks(self) -> dict[str, str]:
        rows = await self.database.run(
            lambda connection: connection.execute("SELECT name, value FROM marks").fetchall()
        )
        return {row["name"]: row["value"] for row in rows}

    @property
    def told(self) -> list[str]:
        return [message for _, message, _ in self.console.lines]


@asynccontextmanager
async def open_onboarding_home(root: Path, owner_files: OwnerFiles | None = None) -> AsyncIterator[OnboardingHome]:
    home, clock, console = Home.at(root), FakeClock(), SilentConsole()
    home.workspace.mkdir(exist_ok=True)
    database = await open_database(home.database)
    journal = Journal(database, console, clock, Redactor())
    files = owner_files or LocalOwnerFiles(home, lambda line: console.line("warn", line))
    onboarding = Onboarding(database=database, files=files, journal=journal, clock=clock)
    try:
        await onboarding.wake()
        yield OnboardingHome(database, console, onboarding)
    finally:
        await database.close()
