"""A budget over a real file for tests, with its ledger and what it reported."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from common.clock import FakeClock
from common.provenance import Importance
from common.redact import Redactor
from modules.runtime.budget.budget import Budget
from modules.runtime.budget.policy import Caps
from modules.runtime.budget.prices import Price
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.connection import Request, Reservation

MAIN, CHEAP = "maker/large", "maker/small"
PRICES = {MAIN: Price(Fraction(2), Fraction(8)), CHEAP: Price(Fraction(1, 4), Fraction(1))}


@dataclass
class Rig:
    """One process with a budget."""

    database: Database
    budget: Budget
    journal: Journal
    clock: FakeClock
    console: SilentConsole

    async def ask(self, request: Request, importance: Importance = "own", purpose: str = "test") -> Reservation:
        return await self.budget.reserve(request, purpose=purpose, importance=importance)

    async def rows(self) -> list[sqlite3.Row]:
        """Return the ledger's rows in order of arrival."""
        return await self.database.run(
            lambda connection: connection.execute("SELECT * FROM model_calls ORDER BY rowid").fetchall()
        )

    async def told(self) -> list[tuple[str, str]]:
        """Return each journalled step with its day, oldest first."""
        entries = await self.journal.recent(1000, kinds=["life"])
        found = [stored.entry for stored in reversed(entries) if stored.entry.loop == "budget"]
        return [(entry.data["day"], entry.data["step"]) for entry in found]


@dataclass(frozen=True)
class Rules:
    """The parameters of a budget, besides its services."""

    caps: Caps = field(default_factory=lambda: Caps(100_000))
    prices: Mapping[str, Price] = field(default_factory=lambda: PRICES)
    cheap_model: str = ""
    timezone: str = "UTC"


@asynccontextmanager
async def process(
    path: Path, rules: Rules, *, clock: FakeClock | None = None, console: SilentConsole | None = None
) -> AsyncIterator[Rig]:
    """Open one process that lives until the block ends; another one may live on the same file."""
    clock, console = clock or FakeClock(), console or SilentConsole()
    database = await Database.open(path, MIGRATIONS)
    try:
        journal = Journal(database, console, clock, Redactor(()))
        budget = Budget(
            database=database,
            clock=clock,
            journal=journal,
            caps=rules.caps,
            prices=rules.prices,
            model=MAIN,
            cheap_model=rules.cheap_model,
            timezone=rules.timezone,
        )
        yield Rig(database, budget, journal, clock, console)
    finally:
        await database.close()


def request(text: str = "hello", limit: int = 1000) -> Request:
    """Return a request of one message, as the gateway builds it."""
    return {"model": MAIN, "messages": [{"role": "user", "content": text}], "max_tokens": limit}
