"""A scripted model service, and a gateway that speaks to it."""

from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from common.clock import FakeClock
from modules.console import SilentConsole
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.types import ChatResult
from modules.llm_gateway.wall import NoWall
from tests.modules.llm_gateway.scripted_model import ScriptedModel, serving
from tests.ways import to_loopback


@pytest.fixture(scope="session")
def served_model() -> Iterator[ScriptedModel]:
    with serving() as running:
        yield running


@pytest.fixture
def model(served_model: ScriptedModel) -> ScriptedModel:
    served_model.script.clear()
    served_model.requests.clear()
    return served_model


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
    door = LLMGateway(
        transport=to_loopback,
        base_url=model.url,
        api_key="made-up",
        model="scripted",
        clock=clock,
        rng=Random(7),
        console=console,
        on_usage=lambda result, purpose: used.append((result, purpose)),
        wall=NoWall(),
        call_timeout_s=5,
    )
    yield door
    await door.aclose()
