"""A journal of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal

SECRET = "correct-horse-battery"


@dataclass
class JournalHome:
    """A journal, and what it writes to."""

    database: Database
    clock: FakeClock
    console: SilentConsole
    journal: Journal


@pytest.fixture
async def journal_home(tmp_path: Path) -> AsyncIterator[JournalHome]:
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    clock, console = FakeClock(), SilentConsole()
    yield JournalHome(database, clock, console, Journal(database, console, clock, Redactor([SECRET])))
    await database.close()
