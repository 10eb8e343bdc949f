"""A store of memories in a SQLite file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from modules.services.memory.rows import MemoryStore
from tests.fresh_database import open_database


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[MemoryStore]:
    database = await open_database(tmp_path / "soul.db")
    try:
        yield MemoryStore(database)
    finally:
        await database.close()
