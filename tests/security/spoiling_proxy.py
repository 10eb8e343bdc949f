"""A proxy in front of a test's network that spoils what passes: it loses, delays, cuts off and rewrites answers."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.loopback import NO_TLS
from town.serving import connection_dropper, drop, serve

SPOILED = ("lose the request", "lose the answer", "delay", "cut off", "half an answer", "empty object", "bad gateway")
_HOP = {"content-length", "transfer-encoding", "connection", "content-encoding"}
_DELAY_S = 0.05


@dataclass
class Proxy:
    """Passes requests on to `target`.

    `spoil` says by the method of a request what happens to it: "" for nothing, else one of `SPOILED`. `rewrite` turns
    an answer's bytes into those that the client gets.
    """

    target: str
    spoil: Callable[[str], str] = lambda _: ""
    rewrite: Callable[[str, bytes], bytes] = lambda _, content: content
    url: str = ""
    happened: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: Request) -> Response:
        method = request.url.path.rsplit("/", 1)[-1]
        self.asked[method] += 1
        how = self.spoil(method)
        self.happened[how] += 1
        if how == "lose the request":
            return drop(request)
        if how == "bad gateway":
            return Response("<html>502</html>", 502, media_type="text/html")
        answer = await self._pass_on(request)
        headers = {name: value for name, value in answer.headers.items() if name not in _HOP}
        content = self.rewrite(method, answer.content) if answer.is_success else answer.content
        if how == "lose the answer":
            return drop(request)
        if how == "delay":
            await asyncio.sleep(_DELAY_S)
        if how == "cut off" and len(content) > 1:
            return StreamingResponse(_cut_off(request, content), answer.status_code, headers=headers)
        if how == "half an answer":
            content = content[: len(content) // 2]
        if how == "empty object" and request.method == "GET":
            content = b"{}"
        return Response(content, answer.status_code, headers=headers)

    async def _pass_on(self, request: Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        async with httpx.AsyncClient(timeout=30, trust_env=False, verify=NO_TLS) as client:
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return await client.request(
                request.method, f"{self.target}{path}", headers=headers, content=await request.body()
            )


async def _cut_off(request: Request, content: bytes) -> AsyncIterator[bytes]:
    yield content[: len(content) // 2]
    connection_dropper(request.scope)()


def by_chance(rng: random.Random, share: float) -> Callable[[str], str]:
    """Return a `spoil` that spoils that share of the requests, each in a random way."""
    return lambda _: rng.choice(SPOILED) if rng.random() < share else ""


@asynccontextmanager
async def open_proxy(target: str) -> AsyncIterator[Proxy]:
    """Open a proxy on loopback in front of `target`."""
    proxy = Proxy(target)
    app = Starlette(routes=[Route("/{path:path}", proxy.answer, methods=["GET", "POST"])])
    async with serve(app) as proxy.url:
        yield proxy
