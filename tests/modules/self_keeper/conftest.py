"""A keeper in a home of its own, with a real journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.console import SilentConsole
from modules.database import Database
from modules.home import Home
from modules.journal.journal import Journal
from modules.schema import MIGRATIONS
from modules.self_keeper.keeper import SelfKeeper

BORN = "# Rowan\n\nI'm rowan.\n\n## Voice\n\nPlain and warm, and never in a hurry.\n\n## Values\n\n- Attention.\n"


@dataclass
class Desk:
    """Where SELF.md lies, who keeps it, and what is told of it."""

    home: Home
    keeper: SelfKeeper
    clock: FakeClock
    journal: Journal
    console: SilentConsole

    @property
    def text(self) -> str:
        return self.home.self_md.read_text()

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in (self.home.memory / "self-history").glob("[!.]*"))

    async def texts(self) -> list[str]:
        """All versions, newest first."""
        return [(await self.keeper.read(version)).decode() for version in await self.keeper.versions()]

    async def told(self) -> list[dict[str, Any]]:
        """What the journal keeps of each decision about SELF.md, oldest first."""
        return [stored.entry.data for stored in reversed(await self.journal.recent(50, kinds=["decision"]))]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    home, clock, console, redactor = Home.at(tmp_path), FakeClock(), SilentConsole(), Redactor(["hunter2-hunter2"])
    home.self_md.write_text(BORN)
    database = await Database.open(home.database, MIGRATIONS)
    journal = Journal(database, console, clock, redactor)
    keeper = SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor)
    yield Desk(home, keeper, clock, journal, console)
    await database.close()
