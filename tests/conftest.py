"""What every test may ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.living import World, clean_environment, open_world


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own settings must not reach the SOULs of a test."""
    for name in list(clean_environment()):
        monkeypatch.delenv(name)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened
