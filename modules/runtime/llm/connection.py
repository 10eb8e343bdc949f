"""The way to the service: one request out, the objects of its answer in. Keeps nothing but open connections."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import httpx

from common.clock import Clock
from modules.runtime.llm.budget_guard import Request
from modules.runtime.llm.deadline import IdleDeadline
from modules.runtime.llm.events import END, chunks, said_of
from modules.runtime.llm.policy import CallVerdict, classify_llm_error, retry_after_ms
from modules.runtime.llm.stream import StreamedAnswer

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_STREAM = "event-stream"
_END_S = 0.1


class Connection:
    """Speaks to one service; arguments as for `LLMGateway`."""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        transport: Callable[[], httpx.AsyncBaseTransport],
        clock: Clock,
        idle_timeout_s: float,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._transport = transport
        self._clock = clock
        self._idle_timeout_s = idle_timeout_s
        self._openai: AsyncOpenAI | None = None

    async def open(self) -> None:
        """Make ready what requests leave by."""
        # NOTE(self): the SDK takes a second to import; nobody should wait for it before the first thought.
        openai = await asyncio.to_thread(importlib.import_module, "openai")
        if self._openai is None:
            http_client = httpx.AsyncClient(transport=self._transport(), timeout=self._idle_timeout_s)
            self._openai = openai.AsyncOpenAI(
                base_url=self._base_url,
                api_key=self._api_key,
                max_retries=0,
                timeout=self._idle_timeout_s,
                http_client=http_client,
            )

    async def ask(self, request: Request, answer: StreamedAnswer, idle_s: float) -> None:
        """Send `request`, and gather what comes in `answer`. Raises whatever goes wrong, for `judge`."""
        if self._openai is None:
            raise RuntimeError("the connection is not open")
        deadline = IdleDeadline(self._clock, idle_s)
        asked = self._openai.chat.completions.with_streaming_response.create(**request, stream=True)
        async with contextlib.AsyncExitStack() as stack:
            async with deadline.waiting():
                response = await stack.enter_async_context(asked)
            answer.is_stream = _STREAM in response.headers.get("content-type", "")
            body = chunks(response.iter_bytes(), is_stream=answer.is_stream)
            async for chunk in deadline.pieces(body):
                answer.add(chunk)
                if chunk is END:
                    break
            # NOTE(self): a body that is read to its end leaves its connection for the next request.
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(_END_S):
                    async for _ in body:
                        pass
        answer.close()

    async def model_names(self) -> tuple[str, ...]:
        """Return the names of the models that the service lists. Raises whatever goes wrong, for `judge`."""
        if self._openai is None:
            raise RuntimeError("the connection is not open")
        page = await self._openai.models.list()
        return tuple(str(one.id) for one in page.data or ())

    def judge(self, error: Exception) -> tuple[CallVerdict, float | None]:
        """What the error means, and the wait in milliseconds that the service asks for."""
        response, said = getattr(error, "response", None), said_of(getattr(error, "body", None))
        verdict = classify_llm_error(error, getattr(error, "status_code", None), getattr(error, "code", None), said)
        return verdict, None if response is None else retry_after_ms(response.headers, self._clock.now())

    async def aclose(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            await self._openai.close()
            self._openai = None
