"""Real memories in a real database, real files beside them, and a clock that stands still."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from common.clock import FakeClock
from common.provenance import Trust
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.services.memory.admission import Kind, NewMemory
from modules.services.memory.recall import MemoryRenderer
from modules.services.memory.rows import MemoryStore
from modules.services.memory.view_sync import DayFiles, MemoryFile
from modules.services.owner_files import LocalOwnerFiles
from modules.services.skills.skills import Framer, Skills
from tests.fresh_database import open_database
from tests.project import ROOT

SKILLS = Skills.load(ROOT / "skills")


@dataclass(frozen=True)
class MemoryHome:
    """The memory of one home, in the database and in files."""

    root: Path
    database: Database
    clock: FakeClock
    store: MemoryStore
    home: Home
    warnings: list[str]

    @property
    def files(self) -> LocalOwnerFiles:
        return LocalOwnerFiles(self.home, self.warnings.append)

    @property
    def view(self) -> MemoryFile:
        """MEMORY.md as a view after a start: it knows only what is on disk."""
        return MemoryFile(store=self.store, database=self.database, files=self.files, clock=self.clock)

    def days(self, timezone: str = "UTC") -> DayFiles:
        return DayFiles(store=self.store, files=self.files, clock=self.clock, timezone=timezone)

    @property
    def memory_renderer(self) -> MemoryRenderer:
        return MemoryRenderer(SKILLS, Framer(SKILLS, random.Random(7)), "UTC")

    @property
    def file(self) -> Path:
        return self.home.workspace / "MEMORY.md"

    async def save(
        self,
        kind: Kind,
        subject: str,
        body: str,
        *,
        trust: Trust = "self",
        source: str = "self",
        tags: tuple[str, ...] = (),
        shareable: bool = False,
    ) -> int:
        new = NewMemory(kind, subject, body, tags, source=source, trust=trust, shareable=shareable)
        return await self.store.save(new, self.clock.now())

    async def curated(self) -> dict[str, str]:
        """Return the body of each curated memory by its subject."""
        return {memory.subject: memory.body for memory in await self.store.listed(kinds=["curated"])}


@asynccontextmanager
async def open_memory_home(root: Path) -> AsyncIterator[MemoryHome]:
    """Open a home that remembers nothing yet."""
    home = Home.at(root)
    home.workspace.mkdir(parents=True, exist_ok=True)
    database = await open_database(home.database)
    yield MemoryHome(root, database, FakeClock(), MemoryStore(database), home, [])
    await database.close()
