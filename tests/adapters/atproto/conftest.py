"""The network for the tests of the Bluesky adapter: one server and event loop, a fresh network for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from tests.adapters.atproto.atproto_scripted import Scripted
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.shared_server import SharedServer
from town.serving import serve


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def shared_server() -> AsyncIterator[SharedServer]:
    shared_server = SharedServer()
    async with serve(shared_server) as url:
        shared_server.url = url
        yield shared_server


@pytest_asyncio.fixture(loop_scope="session")
async def town(shared_server: SharedServer, tmp_path: Path) -> AsyncIterator[AtprotoTown]:
    async with open_atproto_town(shared_server, tmp_path) as town:
        yield town


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def scripted(shared_server: SharedServer, clock: FakeClock) -> Scripted:
    service = Scripted(clock, shared_server.url)
    shared_server.app = service.app
    return service


@pytest_asyncio.fixture(loop_scope="session")
async def alice(scripted: Scripted, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Atproto]:
    """Yield a client of the scripted service, with a session."""
    client = scripted.client(tmp_path, clock)
    assert (await client.authenticate()).success
    yield client
    await client.aclose()
