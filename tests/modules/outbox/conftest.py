"""An outbox that is awake, with the world around it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.outbox.outbox_house import House, RecordService


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with RecordService().serving() as service:
        house = House(tmp_path / "soul.db", service)
        await house.wake()
        yield house
        await house.sleep()
