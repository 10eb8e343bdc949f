"""A home whose first talk is to be held, with a real database, journal and files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import FakeClock
from common.errors import StorageError
from common.redact import Redactor
from modules.commissioning import Commissioning
from modules.console import SilentConsole
from modules.database import Database
from modules.home import Home
from modules.journal.journal import Journal
from modules.schema import MIGRATIONS


@dataclass
class Folder:
    """The workspace as plain files. `refuses`: the disk does not rename."""

    root: Path
    refuses: bool = False
    renamed: list[str] = field(default_factory=list)

    async def read(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None

    async def rename(self, name: str, new: str) -> None:
        if self.refuses:
            raise StorageError("the disk refuses")
        self.renamed.append(name)
        (self.root / name).replace(self.root / new)


@dataclass
class Desk:
    """One life at that home."""

    database: Database
    console: SilentConsole
    folder: Folder
    commissioning: Commissioning

    async def marks(self) -> dict[str, str]:
        rows = await self.database.run(
            lambda connection: connection.execute("SELECT name, value FROM marks").fetchall()
        )
        return {row["name"]: row["value"] for row in rows}

    @property
    def told(self) -> list[str]:
        return [message for _, message, _ in self.console.lines]


@asynccontextmanager
async def open_desk(root: Path) -> AsyncIterator[Desk]:
    home, clock, console = Home.at(root), FakeClock(), SilentConsole()
    home.workspace.mkdir(exist_ok=True)
    database = await Database.open(home.database, MIGRATIONS)
    journal = Journal(database, console, clock, Redactor())
    folder = Folder(home.workspace)
    commissioning = Commissioning(database=database, files=folder, journal=journal, clock=clock)
    try:
        await commissioning.wake()
        yield Desk(database, console, folder, commissioning)
    finally:
        await database.close()
