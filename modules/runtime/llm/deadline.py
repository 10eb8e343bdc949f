"""How long a model service may say nothing, and whether it says anything at all."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from common.clock import Clock
from common.constants import LLM_ANSWER_LONGEST_S
from modules.runtime.llm.budget_guard import Request

LLM_PROBE_TIMEOUT_S = 60.0

T = TypeVar("T")

_PROBE_TOKENS = 16


class IdleDeadline:
    """For one answer: how long is waited for its first piece, and for each further one, by `clock`."""

    def __init__(self, clock: Clock, idle_s: float) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._last_moment = clock.monotonic() + max(LLM_ANSWER_LONGEST_S, idle_s)
        self._due = clock.monotonic() + idle_s

    def waiting(self) -> AbstractAsyncContextManager[object]:
        """Raise `TimeoutError` where the body has not ended when the next piece is due."""
        return self._clock.timeout(self._due - self._clock.monotonic())

    async def pieces(self, stream: AsyncIterable[T]) -> AsyncIterator[T]:
        """What comes, piece by piece. Raises `TimeoutError` where the next one does not come in time."""
        coming = aiter(stream)
        while True:
            async with self.waiting():
                try:
                    piece = await anext(coming)
                except StopAsyncIteration:
                    return
            self._due = min(self._clock.monotonic() + self._idle_s, self._last_moment)
            yield piece


def probe_of(request: Request) -> Request:
    """The smallest request to the same model: whoever answers it would answer the real one."""
    return {"model": request["model"], "messages": [{"role": "user", "content": "."}], "max_tokens": _PROBE_TOKENS}


def probe_idle_s(idle_s: float) -> float:
    """How long the answer to a probe is waited for."""
    return min(idle_s, LLM_PROBE_TIMEOUT_S)
