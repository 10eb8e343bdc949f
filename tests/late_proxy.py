"""A proxy that loses no request: it drops the client's connection, and delivers the held requests later."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.loopback import NO_TLS
from town.serving import drop, serve

_PASSED_ON = ("authorization", "content-type", "accept", "user-agent")


@dataclass
class LateProxy:
    """Forwards everything to one server; the next `hold` POSTs are kept until `deliver` is called."""

    upstream: httpx.AsyncClient
    hold: int = 0
    url: str = ""
    held: list[httpx.Request] = field(default_factory=list)
    posts: int = 0

    async def deliver(self) -> None:
        """Deliver all held requests now."""
        while self.held:
            response = await self.upstream.send(self.held.pop(0))
            assert response.status_code == 201

    async def answer(self, request: Request) -> Response:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = httpx.URL(request.url.path, query=request.url.query.encode())
        onward = self.upstream.build_request(request.method, url, headers=headers, content=await request.body())
        self.posts += request.method == "POST"
        if request.method == "POST" and self.hold:
            self.hold -= 1
            self.held.append(onward)
            return drop(request)
        response = await self.upstream.send(onward)
        kept = {name: value for name, value in response.headers.items() if name not in {"content-length", "date"}}
        return Response(response.content, response.status_code, kept)


@asynccontextmanager
async def late_proxy(upstream_url: str) -> AsyncIterator[LateProxy]:
    """Serve a proxy in front of `upstream_url`."""
    async with httpx.AsyncClient(base_url=upstream_url, trust_env=False, verify=NO_TLS) as upstream:
        proxy = LateProxy(upstream)
        app = Starlette(routes=[Route("/{path:path}", proxy.answer, methods=["GET", "POST", "PATCH", "DELETE"])])
        async with serve(app) as proxy.url:
            yield proxy
