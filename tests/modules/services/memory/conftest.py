"""A store of memories in a SQLite file."""

import pytest

from modules.runtime.database.database import Database
from modules.services.memory.rows import MemoryStore


@pytest.fixture
def store(database: Database) -> MemoryStore:
    return MemoryStore(database)
