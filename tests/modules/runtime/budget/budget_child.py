"""A process that calls the model, to be killed during the call: `python budget_child.py DATABASE URL`."""

import asyncio
import sys
from pathlib import Path
from random import Random

from common.clock import SystemClock
from common.redact import Redactor
from modules.runtime.budget.budget import Budget
from modules.runtime.budget.policy import Caps
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from tests.loopback import to_loopback


async def main(path: Path, url: str) -> None:
    clock, console = SystemClock(), SilentConsole()
    database = await Database.open(path, MIGRATIONS)
    budget = Budget(
        database=database,
        clock=clock,
        journal=Journal(database, console, clock, Redactor(())),
        caps=Caps(50_000),
        prices={},
        model="maker/large",
        timezone="UTC",
    )
    gateway = LLMGateway(
        transport=to_loopback,
        base_url=url,
        api_key="made-up",
        model="maker/large",
        clock=clock,
        rng=Random(1),
        console=console,
        budget_guard=budget,
    )
    await gateway.chat([Message("user", "hello")], purpose="killed", importance="own")


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
