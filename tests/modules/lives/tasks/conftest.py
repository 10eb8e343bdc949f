"""A garden for the tests of coding tasks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.lives.tasks.code_rig import CodeRig
from tests.modules.lives.tasks.workplace import open_workplace


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[CodeRig]:
    async with open_workplace(tmp_path) as workplace:
        yield CodeRig(workplace)
