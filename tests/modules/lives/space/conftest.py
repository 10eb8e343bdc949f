"""An empty room for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.living import World
from tests.modules.lives.space.soul_in_room import Room, open_room


@pytest.fixture
async def room(world: World) -> AsyncIterator[Room]:
    async with open_room(world) as opened:
        yield opened
