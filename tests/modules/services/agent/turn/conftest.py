"""A gateway that speaks to the scripted model service."""

from collections.abc import AsyncIterator

import pytest

from common.clock import FakeClock
from modules.runtime.llm.gateway import LLMGateway
from tests.modules.runtime.llm.scripted_model import ScriptedModel, scripted_gateway


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def gateway(model: ScriptedModel, clock: FakeClock) -> AsyncIterator[LLMGateway]:
    opened = scripted_gateway(
        model.url,
        clock=clock,
        idle_timeout_s=5,
        max_retries=0,
    )
    yield opened
    await opened.aclose()
