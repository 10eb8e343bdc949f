"""A network on loopback with a clock that only the test moves."""

import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from common.clock import FakeClock
from tests.loopback import NO_TLS
from tests.town.github_place import GitHubPlace, open_github_place
from tests.town.running import Town
from town.atproto.network import Network
from town.atproto.service import AtprotoFaults, AtprotoLimits, Limit, atproto_app
from town.serving import serve


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def network(clock: FakeClock) -> Network:
    return Network(clock=clock)


@pytest.fixture
async def town(network: Network, clock: FakeClock) -> AsyncIterator[Town]:
    faults = AtprotoFaults(random.Random(7))
    app = atproto_app(network, faults=faults, limits=AtprotoLimits(everything=Limit(20, 60)))
    async with serve(app) as url, httpx.AsyncClient(base_url=f"{url}/xrpc/", verify=NO_TLS) as http:
        yield Town(network, faults, clock, url, http)


@pytest.fixture
def member(network: Network) -> Callable[[str], str]:
    """Return a function that creates an account with the given name and returns its DID."""
    return lambda name: network.create_account(f"{name}.test", f"{name}-pass", display_name=name.title()).did


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[GitHubPlace]:
    async with open_github_place(tmp_path) as place:
        yield place
