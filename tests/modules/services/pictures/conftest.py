"""A running outbox that sends pictures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.services.pictures.sharing import Sharing, open_sharing


@pytest.fixture
async def sharing(tmp_path: Path) -> AsyncIterator[Sharing]:
    async with open_sharing(tmp_path) as opened:
        yield opened
