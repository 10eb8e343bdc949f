"""A world, and one SOUL in it that keeps its promises."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.services.commitments.commitment_house import House, Place, open_place


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with open_place() as place:
        yield place


@pytest.fixture
async def house(tmp_path: Path, place: Place) -> AsyncIterator[House]:
    house = House(tmp_path, place)
    await house.wake()
    yield house
    await house.sleep()
