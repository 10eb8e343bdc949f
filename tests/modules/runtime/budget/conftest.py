"""A gateway to the scripted model service, guarded by a budget."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from modules.runtime.llm.gateway import LLMGateway
from tests.loopback import to_loopback
from tests.modules.runtime.budget.budget_rig import MAIN, Rig, Rules, process
from tests.modules.runtime.llm.scripted_model import ScriptedModel
from tests.modules.runtime.llm.waited_clock import WaitedClock
from tests.patience import HANG_S


@dataclass
class GuardedGateway:
    """A gateway, the rig of the budget that guards it, and its model service."""

    gateway: LLMGateway
    rig: Rig
    model: ScriptedModel

    async def ledger(self) -> list[tuple[str, int, int]]:
        return [(row["state"], row["input_tokens"], row["output_tokens"]) for row in await self.rig.rows()]


OpenGuarded = Callable[..., AbstractAsyncContextManager[GuardedGateway]]


@pytest.fixture
def open_guarded(model: ScriptedModel, tmp_path: Path) -> OpenGuarded:
    @asynccontextmanager
    async def opened(rules: Rules | None = None, *, url: str = "") -> AsyncIterator[GuardedGateway]:
        async with process(tmp_path / "soul.db", rules or Rules(), clock=WaitedClock()) as rig:
            gateway = LLMGateway(
                transport=to_loopback,
                base_url=url or model.url,
                api_key="made-up",
                model=MAIN,
                clock=rig.clock,
                rng=Random(7),
                console=rig.console,
                budget_guard=rig.budget,
                idle_timeout_s=HANG_S,
                max_retries=1,
            )
            try:
                yield GuardedGateway(gateway, rig, model)
            finally:
                await gateway.aclose()

    return opened
