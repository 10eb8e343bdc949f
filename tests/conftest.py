"""What every test may ask for."""

from __future__ import annotations

import gc
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.exploration import EXPLORE, examples
from tests.running_town import RunningTown, clean_environment, open_running_town

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

pytest_plugins = ["tests.left_out"]


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


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings must not reach the SOULs of a test, nor coverage the programs that one starts."""
    for name in list(clean_environment()):
        monkeypatch.delenv(name)
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture(autouse=True)
def _own_chance(request: pytest.FixtureRequest) -> None:
    """What a test draws from the global generator is the same in every run."""
    if not EXPLORE:
        random.seed(request.node.nodeid)


@pytest.fixture
async def running_town(tmp_path: Path) -> AsyncIterator[RunningTown]:
    async with open_running_town(tmp_path) as opened:
        yield opened
