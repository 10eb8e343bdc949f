"""What tests of several packages use: the database of a SOUL, its journal, and a scripted model service on loopback.

The service runs once for the whole run; its script is fresh for each test.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from tests.fresh_database import open_database
from tests.modules.runtime.llm.scripted_model import ScriptedModel, serving


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with await open_database(tmp_path / "soul.db") as opened:
        yield opened


@pytest.fixture
def journal(database: Database) -> Journal:
    return Journal(database, SilentConsole(), FakeClock(), Redactor())


@pytest.fixture(scope="session")
def served_model() -> Iterator[ScriptedModel]:
    with serving() as running:
        yield running


@pytest.fixture
def model(served_model: ScriptedModel) -> ScriptedModel:
    served_model.script.clear()
    served_model.requests.clear()
    return served_model
