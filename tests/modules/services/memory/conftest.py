"""Both stores, one after the other, for whatever must hold in each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from modules.services.memory.types import MemoryStore
from tests.modules.services.memory.memory_places import PROGRAMS, postgres_place, programs, server, sqlite_place


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    if programs() is None:
        assert not os.environ.get("SOUL_NEED_POSTGRES"), "PostgreSQL must be tried here, and is not installed"
        pytest.skip(f"PostgreSQL is not installed (nothing under {PROGRAMS}): apt-get install postgresql")
    with server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MemoryStore]:
    if request.param == "sqlite":
        async with sqlite_place(tmp_path / "soul.db") as opened:
            yield opened
    else:
        async with postgres_place(request.getfixturevalue("postgres_url")) as there:
            yield there
