"""The GitHub for the tests of its adapter: one server and event loop, a fresh GitHub for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from tests.adapters.github.github_town import GitHubTown, open_github_town
from tests.adapters.shared_server import SharedServer
from town.serving import serve


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def shared_server() -> AsyncIterator[SharedServer]:
    shared_server = SharedServer()
    async with serve(shared_server) as url:
        shared_server.url = url
        yield shared_server


@pytest_asyncio.fixture(loop_scope="session")
async def town(shared_server: SharedServer) -> AsyncIterator[GitHubTown]:
    async with open_github_town(shared_server) as town:
        yield town


@pytest.fixture
def ada(town: GitHubTown) -> GitHub:
    """Return a client of the account that owns the repository."""
    return town.client()
