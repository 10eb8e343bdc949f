"""Fixtures: a town, and one SOUL in it that carries out its commitments."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.runtime.database.database import Database
from tests.modules.services.commitments.commitment_values import Opened
from tests.modules.services.commitments.soul_in_town import SoulInTown, Town, open_town


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def opened(tmp_path: Path, database: Database, clock: FakeClock) -> Opened:
    return Opened(tmp_path, database, clock)


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with open_town() as town:
        yield town


@pytest.fixture
async def soul_in_town(tmp_path: Path, town: Town) -> AsyncIterator[SoulInTown]:
    soul_in_town = SoulInTown(tmp_path, town)
    await soul_in_town.wake()
    yield soul_in_town
    await soul_in_town.sleep()
