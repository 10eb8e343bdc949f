"""The model service: `POST /v1/chat/completions` and `GET /v1/models`, as unmodified clients expect them.

Besides the protocol's fields a request may carry `facts` (see `common/facts.py`), which the scripted mind reads; a
`GatewayMind` forwards requests to another service. Only the armed faults are kept between requests; they are armed in
process or by `POST /town/faults`.
"""

import asyncio
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Container, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

import httpx
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from adapters.web.client import WebTransport
from common.facts import TurnFacts
from town import faults
from town.faults import bad_gateway
from town.model.types import ChatRequest, Completion, Json, Mind, ModelMessage, Offer, Role, ToolUse
from town.serving import event_stream, until_gone

_CHARS_PER_TOKEN = 4
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_TOKENS_PER_PICTURE = 85
_PICTURE = re.compile(r"data:image/(?:png|jpeg|webp|gif);base64,([A-Za-z0-9+/]+={0,2})|https://\S+")
_DETAILS = (None, "auto", "low", "high")
_FACTS = TypeAdapter(TurnFacts)
_PIECE = re.compile(r"\s*\S+\s*")


class BadRequest(ValueError):
    """The body breaks the protocol; `param` names the place."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def error_body(message: str, kind: str, *, code: str | None = None, param: str | None = None) -> Json:
    """Return an error body in the format of the public services."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def read_request(body: Any, *, models: Container[str]) -> ChatRequest:  # noqa: ANN401 - whatever JSON came in
    """Check a parsed body, for one of `models`, and return the request. Raises `BadRequest`."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequest("You must provide a model.", param="model")
    if model not in models:
        raise BadRequest(f"The model `{model}` does not exist.", param="model", code="model_not_found")
    raw_messages = body.get("messages")
    if not isinstance(raw_messages, list) or not raw_messages:
        raise BadRequest("'messages' must be a non-empty array.", param="messages")
    messages = tuple(_message(raw, index) for index, raw in enumerate(raw_messages))
    _check_answers(messages)
    offers = tuple(_offer(raw, index) for index, raw in enumerate(body.get("tools") or ()))
    options = body.get("stream_options")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise BadRequest("'max_tokens' must be an integer above 0.", param="max_tokens")
    return ChatRequest(
        model=model,
        messages=messages,
        offers=offers,
        force=_force(body.get("tool_choice"), offers),
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=limit,
        facts=_facts(body.get("facts")),
    )


def completion_body(request: ChatRequest, completion: Completion, *, created: int) -> Json:
    """Return the answer as one JSON body. `created` is in epoch seconds."""
    text, calls, finish = _limited(request, completion)
    message: Json = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        **_head(request, completion, "chat.completion", created),
        "choices": [choice],
        "usage": usage(request, completion),
    }


def chunks(request: ChatRequest, completion: Completion, *, created: int) -> Iterator[Json]:
    """Yield the answer as the chunks of a stream, in order, without the closing `[DONE]`."""
    text, calls, finish = _limited(request, completion)
    head = _head(request, completion, "chat.completion.chunk", created)

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "choices": [choice], **({"usage": None} if request.include_usage else {})}

    yield chunk({"role": "assistant", "content": "" if text else None})
    for piece in _PIECE.findall(text):
        yield chunk({"content": piece})
    for index, call in enumerate(calls):
        arguments = call["function"]["arguments"]
        opening = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [opening]})
        for start in range(0, len(arguments), 24):
            part = {"index": index, "function": {"arguments": arguments[start : start + 24]}}
            yield chunk({"tool_calls": [part]})
    yield chunk({}, finish)
    if request.include_usage:
        yield {**head, "choices": [], "usage": usage(request, completion)}


def usage(request: ChatRequest, completion: Completion) -> Json:
    """Return token counts, estimated as a quarter of the characters; a picture counts as in low detail."""
    text, calls, _ = _limited(request, completion)
    asked = sum(len(message.text) + 8 for message in request.messages) + sum(
        len(offer.description) + len(json.dumps(offer.parameters)) for offer in request.offers
    )
    said = len(text) + sum(len(json.dumps(call["function"])) for call in calls)
    seen = _TOKENS_PER_PICTURE * sum(message.pictures for message in request.messages)
    prompt, answer = asked // _CHARS_PER_TOKEN + 1 + seen, said // _CHARS_PER_TOKEN + 1
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _head(request: ChatRequest, completion: Completion, kind: str, created: int) -> Json:
    return {
        "id": f"chatcmpl-{_digest(request, completion)}",
        "object": kind,
        "created": created,
        "model": request.model,
    }


def _limited(request: ChatRequest, completion: Completion) -> tuple[str, list[Json], str]:
    """Return text, calls and finish reason, cut at `max_tokens`."""
    room = None if request.max_tokens is None else request.max_tokens * _CHARS_PER_TOKEN
    text = completion.text if room is None else completion.text[:room]
    left = None if room is None else room - len(text)
    calls: list[Json] = []
    cut = len(text) < len(completion.text)
    for number, use in enumerate(completion.calls):
        arguments = json.dumps(use.input, ensure_ascii=False)
        if left is not None:
            cut = cut or len(arguments) > left
            arguments, left = arguments[:left], max(0, left - len(arguments))
        name = {"name": use.name, "arguments": arguments}
        calls.append({"id": f"call_{_digest(request, completion)}{number}", "type": "function", "function": name})
    return text, calls, "length" if cut else "tool_calls" if calls else "stop"


def _digest(request: ChatRequest, completion: Completion) -> str:
    return hashlib.sha256(repr((request.messages, completion)).encode()).hexdigest()[:20]


def _message(raw: Any, index: int) -> ModelMessage:  # noqa: ANN401 - whatever JSON came in
    where = f"messages[{index}]"
    if not isinstance(raw, dict):
        raise BadRequest(f"{where} must be an object.", param=where)
    role = _ROLES.get(str(raw.get("role")))
    if role is None:
        raise BadRequest(f"{where}.role must be one of {', '.join(_ROLES)}.", param=f"{where}.role")
    calls = tuple(_call(call, f"{where}.tool_calls") for call in raw.get("tool_calls") or ())
    text = _text(raw.get("content"), f"{where}.content", between="\n\n" if role == "system" else "\n")
    pictures = _pictures(raw.get("content"), f"{where}.content")
    if pictures and role != "user":
        raise BadRequest("Only a user message may carry an 'image_url'.", param=f"{where}.content")
    if calls and role != "assistant":
        raise BadRequest("Only an assistant message may carry 'tool_calls'.", param=where)
    if role in {"system", "user"} and raw.get("content") is None:
        raise BadRequest(f"{where}.content is missing.", param=f"{where}.content")
    answers = raw.get("tool_call_id") if role == "tool" else ""
    if role == "tool" and (not isinstance(answers, str) or not answers):
        raise BadRequest(f"{where}.tool_call_id is missing.", param=where)
    return ModelMessage(role=role, text=text, calls=calls, answers=str(answers or ""), pictures=pictures)


def _text(content: Any, where: str, *, between: str) -> str:  # noqa: ANN401 - whatever JSON came in
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return between.join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    raise BadRequest(f"{where} must be a string or an array of parts.", param=where)


def _pictures(content: Any, where: str) -> int:  # noqa: ANN401 - whatever JSON came in
    """Return the number of pictures. Raises `BadRequest` for one that cannot be shown."""
    parts = [part for part in content if part.get("type") == "image_url"] if isinstance(content, list) else []
    for part in parts:
        picture = part.get("image_url")
        url = picture.get("url") if isinstance(picture, dict) else None
        if not isinstance(url, str) or not (match := _PICTURE.fullmatch(url)) or len(match[1] or "") % 4:
            raise BadRequest(f"{where} holds an 'image_url' that is no picture.", param=where)
        if picture.get("detail") not in _DETAILS:
            raise BadRequest(f"{where} asks for a detail that there is not.", param=where)
    return len(parts)


def _call(raw: Any, where: str) -> ToolUse:  # noqa: ANN401 - whatever JSON came in
    try:
        function = raw["function"]
        arguments = json.loads(function["arguments"] or "{}")
        return ToolUse(name=str(function["name"]), input=dict(arguments), id=str(raw["id"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"{where} needs an id and a function with name and JSON arguments.", param=where) from error


def _check_answers(messages: tuple[ModelMessage, ...]) -> None:
    """Check that tool answers follow their calls, and that no other message comes before all are answered."""
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if message.role == "tool":
            if message.answers not in open_calls:
                raise BadRequest(f"{where} answers no call made just before.", param=where)
            open_calls.discard(message.answers)
            continue
        if open_calls:
            raise BadRequest(f"{where} comes before these calls were answered: {sorted(open_calls)}.", param=where)
        open_calls = {call.id for call in message.calls}
    if open_calls:
        raise BadRequest(f"These calls were not answered: {sorted(open_calls)}.", param="messages")


def _offer(raw: Any, index: int) -> Offer:  # noqa: ANN401 - whatever JSON came in
    where = f"tools[{index}]"
    function = raw.get("function") if isinstance(raw, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not re.fullmatch(r"[\w-]{1,64}", name):
        raise BadRequest(f"{where} needs a function with a name of letters, digits, _ and -.", param=where)
    parameters = function.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise BadRequest(f"{where}.function.parameters must be an object.", param=where)
    return Offer(name=name, description=str(function.get("description") or ""), parameters=parameters)


def _facts(raw: Any) -> TurnFacts:  # noqa: ANN401 - whatever JSON came in
    if raw is None:
        return TurnFacts()
    try:
        return _FACTS.validate_python(raw)
    except ValidationError as error:
        raise BadRequest(f"'facts' cannot be read: {error.errors()[0]['msg']}", param="facts") from error


def _force(choice: Any, offers: tuple[Offer, ...]) -> str | None:  # noqa: ANN401 - whatever JSON came in
    if choice is None or choice in ("auto", "none"):
        return None
    if not offers:
        raise BadRequest("'tool_choice' is only allowed when 'tools' are given.", param="tool_choice")
    if choice == "required":
        return "any"
    name = (choice.get("function") or {}).get("name") if isinstance(choice, dict) else None
    if name not in {offer.name for offer in offers}:
        raise BadRequest(f"Tool choice {name!r} is not among 'tools'.", param="tool_choice")
    return str(name)


_CONNECT_S = 10.0
_READ_S = 180.0
_PASSED_ON = ("content-type", "retry-after", "x-request-id")


@dataclass(frozen=True, slots=True)
class GatewayMind:
    """A model service. `base_url` ends before `/chat/completions`; `model` is the service's name for the model."""

    base_url: str
    api_key: str = field(repr=False)
    model: str

    @property
    def models(self) -> tuple[str, ...]:
        return (self.model,)

    @property
    def about(self) -> str:
        return f"They think with the language model {self.model}."

    async def forward(self, body: Json) -> Response:
        """Forward `body` with our model and key, without the field that only the scripted mind reads."""
        transport = WebTransport(allow=[self.base_url])
        client = httpx.AsyncClient(transport=transport, timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S))
        request = client.build_request(
            "POST",
            f"{self.base_url.rstrip('/')}/chat/completions",
            json={key: value for key, value in body.items() if key != "facts"} | {"model": self.model},
            headers={"authorization": f"Bearer {self.api_key}"},
        )
        try:
            upstream = await client.send(request, stream=True)
        except httpx.HTTPError as error:
            await client.aclose()
            text = f"The model service at {request.url.host} cannot be reached ({type(error).__name__})."
            return JSONResponse(error_body(text, "server_error"), status_code=502)
        headers = {name: upstream.headers[name] for name in _PASSED_ON if name in upstream.headers}
        return StreamingResponse(_pipe(client, upstream), status_code=upstream.status_code, headers=headers)


async def _pipe(client: httpx.AsyncClient, upstream: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for part in upstream.aiter_bytes():
            yield part
    finally:
        await upstream.aclose()
        await client.aclose()


FaultKind = Literal[
    "rate_limited",  # 429 with retry-after
    "bad_gateway",  # 502 with an HTML body
    "hang",  # answer nothing for `seconds`, then 502
    "cut",  # begin the answer, then drop the connection
    "unauthorized",  # 401
    "payment_required",  # 402
]
Fault: TypeAlias = faults.Fault[FaultKind]


class ModelFaults(faults.ArmedFaults[FaultKind]):
    """The armed faults of the model service."""

    kinds = get_args(FaultKind)


_CHUNKS_BEFORE_CUT = 3


def model_app(mind: Mind | GatewayMind, *, api_key: str, faults: ModelFaults | None = None) -> Starlette:
    """Return the service for `mind`. Callers send `api_key` as their bearer token.

    Args:
        mind: what answers.
        api_key: any other key is refused with 401.
        faults: pass them to arm some in process.

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
