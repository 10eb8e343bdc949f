"""The network that the tests of the Bluesky adapter live in: one server and event loop, a fresh world for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from tests.adapters.atproto.atproto_house import House, open_house
from tests.adapters.atproto.atproto_scripted import Scripted
from tests.adapters.door import Door
from town.serving import serve


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def door() -> AsyncIterator[Door]:
    door = Door()
    async with serve(door) as url:
        door.url = url
        yield door


@pytest_asyncio.fixture(loop_scope="session")
async def house(door: Door, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(door, tmp_path) as house:
        yield house


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scripted(door: Door, clock: FakeClock) -> Scripted:
    service = Scripted(clock, door.url)
    door.app = service.app
    return service


@pytest_asyncio.fixture(loop_scope="session")
async def alice(scripted: Scripted, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Atproto]:
    """A client of the scripted service, with a session."""
    client = scripted.client(tmp_path, clock)
    assert (await client.authenticate()).success
    yield client
    await client.aclose()
