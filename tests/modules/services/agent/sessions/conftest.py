"""What the tests of conversations share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.runtime.llm.scripted_model import ScriptedModel
from tests.modules.services.agent.sessions.session_desk import Desk, open_desk


@pytest.fixture
async def desk(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path, model) as opened:
        yield opened
