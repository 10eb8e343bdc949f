"""An empty room for each test that asks for one."""

from collections.abc import AsyncIterator

import pytest

from tests.modules.lives.space.soul_in_room import Room, open_room
from tests.running_town import RunningTown


@pytest.fixture
async def room(running_town: RunningTown) -> AsyncIterator[Room]:
    async with open_room(running_town) as opened:
        yield opened
