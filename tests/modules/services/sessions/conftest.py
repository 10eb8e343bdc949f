"""The fixture of the tests of conversations: a home for sessions."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.modules.runtime.llm.scripted_model import ScriptedModel
from tests.modules.services.sessions.session_home import SessionHome, open_session_home


@pytest.fixture
async def session_home(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[SessionHome]:
    async with open_session_home(tmp_path, model) as opened:
        yield opened
