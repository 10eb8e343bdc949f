"""What every test may ask for."""

from __future__ import annotations

import gc
import os
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.counting_loop import CountingLoop
from tests.exploration import EXPLORE, examples
from tests.running_town import RunningTown, clean_environment, open_running_town
from tests.town_github import TownGitHub, serve_github

# NOTE(self): how fast examples come depends on what else the machine does; what they show does not.
settings.register_profile(
    "project",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not EXPLORE,
    database=None,
    max_examples=examples(100),
    print_blob=True,
)
settings.load_profile("project")

# NOTE(self): nothing that a test starts speaks TLS with the world, and to read a hundred certificates for each client
# takes longer than most tests. The programs that a test starts inherit it.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "fixtures" / "no_authority.pem")

pytest_plugins = ["tests.left_out"]

_COLLECT_AFTER = (10_000, 20, 20)
"""What Python does after 700 objects, at its usual thresholds, takes a sixth of the processor time of all tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of collected tests stay to the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_COLLECT_AFTER)


def pytest_asyncio_loop_factories() -> dict[str, type[CountingLoop]]:
    return {"counting": CountingLoop}


@pytest.fixture(scope="session", autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A developer's own settings must not reach the SOULs of a test, nor coverage the programs that one starts.

    What these keep of themselves stays with the test.
    """
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    for name in (*clean_environment(), "COVERAGE_PROCESS_CONFIG"):
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _own_chance(request: pytest.FixtureRequest) -> None:
    """What a test draws from the global generator is the same in every run."""
    if not EXPLORE:
        random.seed(request.node.nodeid)


@pytest.fixture
async def running_town(tmp_path: Path) -> AsyncIterator[RunningTown]:
    async with open_running_town(tmp_path) as opened:
        yield opened


@pytest.fixture
async def town_github(running_town: RunningTown) -> AsyncIterator[TownGitHub]:
    async with serve_github(running_town) as github:
        yield github
