"""The GitHub that the tests of its adapter live in: one server and event loop, a fresh world for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from tests.adapters.door import Door
from tests.adapters.github.github_house import House, open_house
from town.serving import serve


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def door() -> AsyncIterator[Door]:
    door = Door()
    async with serve(door) as url:
        door.url = url
        yield door


@pytest_asyncio.fixture(loop_scope="session")
async def house(door: Door) -> AsyncIterator[House]:
    async with open_house(door) as house:
        yield house


@pytest.fixture
def ada(house: House) -> GitHub:
    """Who owns the repository."""
    return house.client()
