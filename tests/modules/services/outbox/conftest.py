"""A running outbox, with the service that it writes to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.services.outbox.running_outbox import RunningOutbox, open_running_outbox


@pytest.fixture
async def running_outbox(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as running_outbox:
        yield running_outbox
