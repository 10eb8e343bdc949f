"""A gateway to the scripted model service."""

from collections.abc import AsyncIterator

import pytest

from common.clock import FakeClock
from modules.runtime.console import SilentConsole
from modules.runtime.llm.dialect import ChatResult
from modules.runtime.llm.gateway import LLMGateway
from tests.modules.runtime.llm.scripted_model import ScriptedModel, scripted_gateway
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
    opened = scripted_gateway(
        model.url,
        clock=clock,
        console=console,
        on_usage=lambda result, purpose: used.append((result, purpose)),
        idle_timeout_s=HANG_S,
    )
    yield opened
    await opened.aclose()
