"""Fixtures that several scenarios share."""

from collections.abc import AsyncIterator

import pytest

from tests.running_town import RunningTown
from tests.scenarios.peers_github import serve_peers_github
from town.github.network import GitHubNetwork


@pytest.fixture
async def peers_github(running_town: RunningTown) -> AsyncIterator[GitHubNetwork]:
    """Serve GitHub beside the town, with accounts that name their SOULs."""
    async with serve_peers_github(running_town) as served:
        yield served
