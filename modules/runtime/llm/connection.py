"""Sends one request to the model service and collects its answer.

Each request passes the budget guard before it leaves; the gateway does not know who keeps the budget. What a service
refused by name, and how long it may say nothing, is kept in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import httpx

from common.clock import Clock
from common.constants import LLM_ANSWER_LONGEST_S
from common.provenance import Importance
from modules.runtime.llm.dialect import Usage, has_pictures, sees_within_bounds, without_pictures, worded_for
from modules.runtime.llm.policy import (
    CallVerdict,
    adapt_request,
    classify_llm_error,
    refuses_one_picture,
    refuses_pictures,
    retry_after_ms,
)
from modules.runtime.llm.stream import END, StreamedAnswer, chunks, said_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI


Request: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Leave to send one request.

    Attributes:
        id: its identifier; "" if nobody keeps count.
        request: as it may leave, perhaps to a cheaper model, perhaps with a smaller limit.
        input_tokens: an upper bound of the request's tokens.
        output_tokens: the limit of the answer.
        micro_usd: what it can cost at most, in millionths of a dollar; None if the price is unknown.
        step: how far the budget is used, in the budget's words.

    """

    id: str
    request: Request
    input_tokens: int = 0
    output_tokens: int = 0
    micro_usd: int | None = None
    step: str = ""


class BudgetGuard(Protocol):
    """Lets a request through, or raises `BudgetExceeded`. A reservation neither settled nor released stays counted."""

    async def reserve(self, request: Request, *, purpose: str, importance: Importance) -> Reservation:
        """Return leave for one request, counted at its worst case before this returns. Raises `BudgetExceeded`."""
        ...

    async def settle(self, reservation: Reservation, usage: Usage | None, weight: int) -> int | None:
        """Settle an answered call by `usage`, else by `weight` tokens of output; return millionths of a dollar."""
        ...

    async def release(self, reservation: Reservation, *, unanswered: bool = False) -> None:
        """Free the reservation of a call that cost nothing: it was refused, or no byte of an answer came."""
        ...

    async def unanswered(self, reservation: Reservation) -> None:
        """Keep the reservation of a call without a whole answer: it may have been billed, and is reported apart."""
        ...


class NoBudgetGuard:
    """A guard that counts nothing, for a single call that a person watches."""

    async def reserve(self, request: Request, *, purpose: str, importance: Importance) -> Reservation:
        return Reservation("", request)

    async def settle(self, reservation: Reservation, usage: Usage | None, weight: int) -> int | None:
        return None

    async def release(self, reservation: Reservation, *, unanswered: bool = False) -> None:
        return

    async def unanswered(self, reservation: Reservation) -> None:
        return


Vision: TypeAlias = Literal["on", "off", "auto"]
"""Whether pictures are sent: always, never, or until a model refuses them."""


class ServiceQuirks:
    """Adapts each request to what its model and its service accept.

    Args:
        base_url: the service.
        vision: `auto` remembers that a model cannot see; with `on` the model is sent the next picture all the same.

    """

    def __init__(self, *, base_url: str, vision: Vision = "auto") -> None:
        self._base_url = base_url
        self._vision = vision
        self._learned: dict[str, list[CallVerdict]] = defaultdict(list)
        self._blind: set[str] = set()

    def sees(self, model: str) -> bool:
        """Return whether it is worth sending pictures to this model."""
        return self._vision != "off" and model not in self._blind and sees_within_bounds(model)

    def apply(self, request: Request) -> Request:
        """Return the request without what its model is known to refuse."""
        model = str(request["model"])
        worded = worded_for(request, self._base_url)
        if not self.sees(model):
            worded = without_pictures(worded)
        for verdict in self._learned[model]:
            worded = adapt_request(worded, verdict) or worded
        return worded

    def learn(self, request: Request, sent: Request, verdict: CallVerdict) -> Request | None:
        """Return the request to try in place of `request` after `sent` was refused; None if nothing can change."""
        model = str(sent["model"])
        if adapt_request(sent, verdict) is not None:
            self._learned[model].append(verdict)
            return request
        if not has_pictures(sent) or not refuses_pictures(verdict):
            return None
        if self._vision == "auto" and not refuses_one_picture(verdict):
            self._blind.add(model)
        return without_pictures(request)


T = TypeVar("T")

_PROBE_TOKENS = 16


class IdleDeadline:
    """Limits how long one answer is waited for: for its first piece, and for each further one, by `clock`."""

    def __init__(self, clock: Clock, idle_s: float) -> None:
        self._clock = clock
        self._idle_s = idle_s
        self._last_moment = clock.monotonic() + max(LLM_ANSWER_LONGEST_S, idle_s)
        self._due = clock.monotonic() + idle_s

    def waiting(self) -> AbstractAsyncContextManager[object]:
        """Return a context that raises `TimeoutError` if its block has not ended when the next piece is due."""
        return self._clock.timeout(self._due - self._clock.monotonic())

    async def pieces(self, stream: AsyncIterable[T]) -> AsyncIterator[T]:
        """Yield the pieces as they come. Raises `TimeoutError` if the next one does not come in time."""
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
    """Return the smallest request to the same model: a service that answers it would answer the real one."""
    return {"model": request["model"], "messages": [{"role": "user", "content": "."}], "max_tokens": _PROBE_TOKENS}


_STREAM = "event-stream"
_END_S = 0.1


@dataclass(slots=True, kw_only=True)
class Connection:
    """The connection to one service; arguments as for `LLMGateway`."""

    base_url: str
    api_key: str = field(repr=False)
    transport: Callable[[], httpx.AsyncBaseTransport]
    clock: Clock
    idle_timeout_s: float
    _openai: AsyncOpenAI | None = field(default=None, init=False)

    async def open(self) -> None:
        """Create the client that sends the requests, unless there is one."""
        # NOTE(self): the SDK takes a second to import; nobody should wait for it before the first request.
        openai = await asyncio.to_thread(importlib.import_module, "openai")
        if self._openai is None:
            http_client = httpx.AsyncClient(transport=self.transport(), timeout=self.idle_timeout_s)
            self._openai = openai.AsyncOpenAI(
                base_url=self.base_url,
                api_key=self.api_key,
                max_retries=0,
                timeout=self.idle_timeout_s,
                http_client=http_client,
            )

    async def ask(self, request: Request, answer: StreamedAnswer, idle_s: float) -> None:
        """Send `request`, and collect what comes in `answer`. Raises whatever goes wrong, for `judge`."""
        if self._openai is None:
            raise RuntimeError("the connection is not open")
        deadline = IdleDeadline(self.clock, idle_s)
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
            # NOTE(self): once a body is read to its end, its connection can carry the next request.
            with contextlib.suppress(TimeoutError):
                async with self.clock.timeout(_END_S):
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
        """Return what the error means, and the wait in milliseconds that the service asks for, if any."""
        response, said = getattr(error, "response", None), said_of(getattr(error, "body", None))
        verdict = classify_llm_error(error, getattr(error, "status_code", None), getattr(error, "code", None), said)
        return verdict, None if response is None else retry_after_ms(response.headers, self.clock.now())

    async def aclose(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            await self._openai.close()
            self._openai = None
