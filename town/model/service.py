"""The model service: `POST /v1/chat/completions` and `GET /v1/models`, as unmodified clients expect them.

Beside the protocol's fields a request may carry `facts` (see `common/facts.py`), which the scripted mind reads.

Keeps nothing between requests but the `faults` that are armed in process or by `POST /town/faults`.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from town.faults import bad_gateway
from town.model.faults import Fault, ModelFaults
from town.model.gateway import GatewayMind
from town.model.types import ChatRequest, Completion, Json, Mind
from town.model.wire import BadRequest, chunks, completion_body, error_body, read_request
from town.serving import event_stream, until_gone

_CHUNKS_BEFORE_CUT = 3


def model_app(mind: Mind | GatewayMind, *, api_key: str, faults: ModelFaults | None = None) -> Starlette:
    """The service in front of `mind`. Callers send `api_key` as their bearer token.

    Args:
        mind: who answers.
        api_key: any other key is refused with 401.
        faults: shared with whoever wants to arm some.

    """
    service = _ModelService(mind, api_key, faults if faults is not None else ModelFaults())
    routes = [
        Route("/v1/chat/completions", service.complete, methods=["POST"]),
        Route("/v1/models", service.models, methods=["GET"]),
        Route("/town/faults", service.faults, methods=["GET", "POST", "DELETE"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error})


class _ModelService:
    def __init__(self, mind: Mind | GatewayMind, api_key: str, faults: ModelFaults) -> None:
        self._mind = mind
        self._key = api_key
        self._faults = faults

    async def complete(self, request: Request) -> Response:
        self._check_key(request)
        fault = self._faults.meet(f"{request.method} {request.url.path}")
        if fault and fault.kind != "cut":
            return await _failing(fault, request)
        body = await _json(request)
        try:
            chat = read_request(body, models=self._mind.models)
            if isinstance(self._mind, GatewayMind):
                return await self._mind.forward(body)
            return _answer(chat, await self._mind.complete(chat), cut=fault is not None)
        except BadRequest as error:
            return _refusal(400, str(error), "invalid_request_error", code=error.code, param=error.param)

    async def models(self, request: Request) -> Response:
        self._check_key(request)
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "town"} for name in self._mind.models]
        return JSONResponse({"object": "list", "data": data})

    async def faults(self, request: Request) -> Response:
        self._check_key(request)
        return await self._faults.answer(request)

    def _check_key(self, request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._key.encode()):
            raise HTTPException(401, "Incorrect API key provided.")


def _answer(chat: ChatRequest, completion: Completion, *, cut: bool) -> Response:
    created = int(time.time())
    if not chat.stream:
        answer = completion_body(chat, completion, created=created)
        return _Cut(json.dumps(answer)[:40]) if cut else JSONResponse(answer)
    parts = chunks(chat, completion, created=created)
    if cut:
        return _Cut("".join(_event(part) for part in islice(parts, _CHUNKS_BEFORE_CUT)))
    return event_stream(_events(parts))


class _Cut(Response):
    """Sends the beginning of an answer, then drops the connection."""

    media_type = "text/event-stream"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"transfer-encoding", b"chunked")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})


async def _failing(fault: Fault, request: Request) -> Response:
    if fault.kind == "rate_limited":
        answer = _refusal(429, "Rate limit reached.", "requests", code="rate_limit_exceeded")
        answer.headers["retry-after"] = f"{fault.seconds:g}"
        return answer
    if fault.kind == "unauthorized":
        return _refusal(401, "Incorrect API key provided.", "invalid_request_error", code="invalid_api_key")
    if fault.kind == "payment_required":
        return _refusal(402, "Insufficient credits.", "insufficient_quota", code="insufficient_quota")
    if fault.kind == "hang":
        await until_gone(request, asyncio.sleep(fault.seconds))
    return bad_gateway()


async def _json(request: Request) -> Json:
    try:
        body = json.loads(await request.body())
    except ValueError as error:
        raise HTTPException(400, "The body is not valid JSON.") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "The body must be a JSON object.")
    return body


def _event(part: Json) -> str:
    return f"data: {json.dumps(part, ensure_ascii=False)}\n\n"


async def _events(parts: Iterator[Json]) -> AsyncIterator[str]:
    for part in parts:
        yield _event(part)
    yield "data: [DONE]\n\n"


def _refusal(status: int, message: str, kind: str, *, code: str | None = None, param: str | None = None) -> Response:
    return JSONResponse(error_body(message, kind, code=code, param=param), status_code=status)


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "Something broke."
    code = {401: "invalid_api_key", 404: "unknown_url"}.get(status)
    return _refusal(status, detail, "invalid_request_error", code=code)
