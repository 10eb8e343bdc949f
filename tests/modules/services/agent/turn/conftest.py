"""A gateway that speaks to the scripted model service."""

from collections.abc import AsyncIterator
from random import Random

import pytest

from common.clock import FakeClock
from modules.runtime.console import SilentConsole
from modules.runtime.llm.budget_guard import NoBudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from tests.loopback import to_loopback
from tests.modules.runtime.llm.scripted_model import ScriptedModel


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def gateway(model: ScriptedModel, clock: FakeClock) -> AsyncIterator[LLMGateway]:
    opened = LLMGateway(
        budget_guard=NoBudgetGuard(),
        transport=to_loopback,
        base_url=model.url,
        api_key="made-up",
        model="scripted",
        clock=clock,
        rng=Random(7),
        console=SilentConsole(),
        idle_timeout_s=5,
        max_retries=0,
    )
    yield opened
    await opened.aclose()
