"""The fixture of the tests of the keeper: a home with a SELF.md."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.services.identity.self_home import SelfHome, open_self_home


@pytest.fixture
async def self_home(tmp_path: Path) -> AsyncIterator[SelfHome]:
    async with open_self_home(tmp_path) as opened:
        yield opened
