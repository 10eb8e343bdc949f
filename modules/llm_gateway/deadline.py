"""How long a model service may say nothing, and whether it says anything at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from common.constants import LLM_ANSWER_LONGEST_S, LLM_PROBE_TIMEOUT_S
from modules.llm_gateway.wall import Request

_PROBE_TOKENS = 16


@asynccontextmanager
async def idle_deadline(idle_s: float) -> AsyncIterator[Callable[[], None]]:
    """Raise `TimeoutError` where nothing comes for `idle_s`; what this gives is called for each piece that came."""
    now = asyncio.get_running_loop().time
    last_moment = now() + max(LLM_ANSWER_LONGEST_S, idle_s)
    async with asyncio.timeout(idle_s) as timeout:
        yield lambda: timeout.reschedule(min(now() + idle_s, last_moment))


def probe_of(request: Request) -> Request:
    """The smallest request to the same model: whoever answers it would answer the real one."""
    return {"model": request["model"], "messages": [{"role": "user", "content": "."}], "max_tokens": _PROBE_TOKENS}


def probe_idle_s(idle_s: float) -> float:
    """How long the answer to a probe is waited for."""
    return min(idle_s, LLM_PROBE_TIMEOUT_S)
