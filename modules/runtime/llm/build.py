"""Builds the way to the model, for whoever composes a SOUL."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

from adapters.web.transport import http_transport_factory
from common.clock import Clock, iso
from common.files import append_bounded
from common.json_lines import json_line
from common.redact import Redactor
from common.settings import Settings
from modules.runtime.console import Console
from modules.runtime.home import Home
from modules.runtime.llm.budget_guard import BudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.pictures import Hydrate
from modules.runtime.llm.types import ChatResult
from modules.runtime.service_health import ServiceHealth
from modules.runtime.tracing import open_tracing


class UsageLog:
    """Appends lines; when the file has grown too large it becomes `<name>.1`, and a new one begins."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def note(self, result: ChatResult, purpose: str) -> None:
        """One answered call. Raises `StorageError`."""
        line = {
            "ts": iso(self._clock.now()),
            "purpose": purpose,
            "model": result.model,
            "input": result.usage.input_tokens,
            "cached": result.usage.cached_tokens,
            "output": result.usage.output_tokens,
            "usd": result.cost_usd,
            "attempts": result.attempts,
            "ms": round(result.seconds * 1000),
        }
        append_bounded(self._path, json_line(line))


class GatewayServices(Protocol):
    """What it is built from."""

    settings: Settings
    home: Home
    clock: Clock
    rng: random.Random
    console: Console
    redactor: Redactor
    health: ServiceHealth
    stack: AsyncExitStack

    @property
    def budget(self) -> BudgetGuard: ...


def open_gateway(
    services: GatewayServices, *, on_measured: Callable[[str, int, int], None], hydrate: Hydrate
) -> LLMGateway:
    """Return the way to the model of the settings; `on_measured` and `hydrate` are those of `LLMGateway`."""
    settings = services.settings
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=services.clock,
        rng=services.rng,
        console=services.console,
        budget_guard=services.budget,
        redactor=services.redactor,
        on_usage=UsageLog(services.home.usage_log, services.clock).note,
        on_measured=on_measured,
        on_outcome=partial(services.health.note, "model"),
        cache_key=settings.agent_name,
        hydrate=hydrate,
        vision=settings.ai_gateway_vision,
        reads_facts=settings.ai_gateway_facts,
        transport=http_transport_factory(settings.ai_gateway_base_url, private_ok=settings.soul_allow_private_net),
        idle_timeout_s=settings.ai_gateway_idle_timeout_s,
        tracing=open_tracing(settings, services.stack),
    )
    services.stack.push_async_callback(gateway.aclose)
    return gateway
