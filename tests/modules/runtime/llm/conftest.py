"""A gateway that speaks to the scripted model service."""

from collections.abc import AsyncIterator
from random import Random

import pytest

from common.clock import FakeClock
from modules.runtime.console import SilentConsole
from modules.runtime.llm.budget_guard import NoBudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import ChatResult
from tests.loopback import to_loopback
from tests.modules.runtime.llm.scripted_model import ScriptedModel
from tests.patience import HANG_S


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def console() -> SilentConsole:
    return SilentConsole()


@pytest.fixture
def used() -> list[tuple[ChatResult, str]]:
    return []


@pytest.fixture
async def gateway(
    model: ScriptedModel, clock: FakeClock, console: SilentConsole, used: list[tuple[ChatResult, str]]
) -> AsyncIterator[LLMGateway]:
    opened = LLMGateway(
        transport=to_loopback,
        base_url=model.url,
        api_key="made-up",
        model="scripted",
        clock=clock,
        rng=Random(7),
        console=console,
        on_usage=lambda result, purpose: used.append((result, purpose)),
        budget_guard=NoBudgetGuard(),
        idle_timeout_s=HANG_S,
    )
    yield opened
    await opened.aclose()
