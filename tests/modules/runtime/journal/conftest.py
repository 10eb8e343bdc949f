"""A journal of its own for each test."""

from dataclasses import dataclass

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
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
def journal_home(database: Database) -> JournalHome:
    clock, console = FakeClock(), SilentConsole()
    return JournalHome(database, clock, console, Journal(database, console, clock, Redactor([SECRET])))
