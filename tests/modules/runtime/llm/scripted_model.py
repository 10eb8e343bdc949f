"""A model service on loopback that replies as a test says: real HTTP, real event streams, every misbehaviour."""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from common.clock import Clock
from modules.runtime.console import SilentConsole
from modules.runtime.llm.connection import NoBudgetGuard
from modules.runtime.llm.gateway import LLMGateway
from tests.loopback import to_loopback
from tests.patience import HANG_S

Wire = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One scripted answer: chunks of a stream, or an HTTP error.

    With a `gate` each chunk waits for one release of it; an answer that `hangs` never begins.
    """

    chunks: tuple[Wire, ...] = ()
    status: int = 200
    error: Wire | None = None
    raw: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    done: bool = True
    reset: bool = False
    hangs: bool = False
    gate: threading.Semaphore | None = None


def _chunk(delta: Wire, finish: str | None = None) -> Wire:
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _usage(prompt: int, completion: int) -> Wire:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**_chunk({}), "choices": [], "usage": usage}


def says(text: str, *, finish: str = "stop", usage: bool = True) -> Reply:
    """Return plain text, streamed in pieces of three characters."""
    pieces = [_chunk({"content": text[start : start + 3]}) for start in range(0, len(text), 3)]
    return Reply((*pieces, _chunk({}, finish), *([_usage(10, 5)] if usage else [])))


def calls(*wanted: tuple[str, str], finish: str = "tool_calls", text: str = "", ids: bool = True) -> Reply:
    """Return tool calls `(name, arguments as text)`, each streamed in pieces."""
    chunks = [_chunk({"content": text})] if text else []
    for index, (name, arguments) in enumerate(wanted):
        head = {"index": index, "type": "function", "function": {"name": name, "arguments": ""}}
        chunks.append(_chunk({"tool_calls": [head | ({"id": f"srv-{index}"} if ids else {})]}))
        chunks += [
            _chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[start : start + 7]}}]})
            for start in range(0, len(arguments), 7)
        ]
    return Reply((*chunks, _chunk({}, finish), _usage(20, 8)))


def refuses(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> Reply:
    """Return an HTTP error in the usual form."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, error={"error": {"message": message, "code": code}}, headers=named)


def scripted_gateway(url: str, clock: Clock, **options: Any) -> LLMGateway:
    """Return a gateway to a scripted model at `url`, without a budget; `options` override the defaults."""
    given: dict[str, Any] = {
        "transport": to_loopback,
        "api_key": "made-up",
        "model": "scripted",
        "console": SilentConsole(),
        "budget_guard": NoBudgetGuard(),
        "rng": Random(7),
    }
    return LLMGateway(base_url=url, clock=clock, **given | options)


class ScriptedModel:
    """Plays `script` from left to right and keeps the bodies of `requests`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.hung = 0  # number of answers that never began
        self.script: deque[Reply] = deque()
        self.requests: list[Wire] = []

    def plays(self, *replies: Reply) -> None:
        self.script.extend(replies)

    async def answer(self, request: Request) -> Response:
        self.requests.append(json.loads(await request.body()))
        if not self.script:
            return JSONResponse({"error": {"message": "the script has ended"}}, 418)
        reply = self.script.popleft()
        if reply.error is not None:
            return JSONResponse(reply.error, reply.status, reply.headers)
        if reply.raw:
            return Response(reply.raw, reply.status, reply.headers)
        return StreamingResponse(self._stream(reply), media_type="text/event-stream")

    async def _stream(self, reply: Reply) -> AsyncIterator[bytes]:
        if reply.hangs:
            self.hung += 1
            await asyncio.Event().wait()
        for chunk in reply.chunks:
            if reply.gate:
                await asyncio.to_thread(reply.gate.acquire, timeout=HANG_S)
            yield f"data: {json.dumps(chunk)}\n\n".encode()
        if reply.reset:
            raise ConnectionResetError
        if reply.done:
            yield b"data: [DONE]\n\n"


@contextmanager
def serving() -> Iterator[ScriptedModel]:
    """Run a server in a thread of its own, on a free port, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    model = ScriptedModel(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    app = Starlette(routes=[Route("/v1/chat/completions", model.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield model
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        listener.close()
