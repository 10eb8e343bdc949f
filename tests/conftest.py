"""Fixtures and hooks for every test."""

import gc
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.counting_loop import CountingLoop
from tests.exploration import EXPLORE, examples
from tests.running_town import RunningTown, clean_environment, open_running_town
from tests.town_github import TownGitHub, serve_github

# NOTE(self): the time that an example takes depends on the load of the machine, its result does not.
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

# NOTE(self): no program in a test speaks TLS with the outside world, and reading a hundred certificates for each client
# takes longer than most tests. The programs that a test starts inherit this setting.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "fixtures" / "no_authority.pem")

# NOTE(self): a shell lets what it starts in the background ignore SIGINT, and `nohup` SIGHUP. The programs that a test
# starts would inherit that, and never end when the test asks them to.
for _signum in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_signum) is signal.SIG_IGN:
        signal.signal(_signum, signal.SIG_DFL)

pytest_plugins = ["tests.left_out"]

_COLLECT_AFTER = (10_000, 20, 20)
"""At the usual thresholds, collecting after 700 objects takes a sixth of the processor time of all tests."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exempt the collected tests from garbage collection, as thousands of them stay to the end."""
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
    """Keep a developer's settings out of the SOULs of a test, and coverage out of the programs that it starts.

    State files of the programs go to a temporary folder.
    """
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    for name in (*clean_environment(), "COVERAGE_PROCESS_CONFIG"):
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _own_chance(request: pytest.FixtureRequest) -> None:
    """Seed the global random generator with the name of the test, so that each run draws the same."""
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
