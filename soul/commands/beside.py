"""Opens the database of a home for a command that also writes into its journal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.clock import Clock
from common.redact import Redactor
from common.settings import Settings
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal


@asynccontextmanager
async def journal_beside(settings: Settings, home: Home, clock: Clock) -> AsyncIterator[tuple[Database, Journal]]:
    """Yield the database and journal of a home in which a SOUL may be awake; raise the errors of `Database.beside`."""
    async with await Database.beside(home.database) as database:
        yield database, Journal(database, SilentConsole(), clock, Redactor(settings.secrets))
