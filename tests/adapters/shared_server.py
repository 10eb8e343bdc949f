"""One server on loopback that all tests of the adapters share."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send


class SharedServer:
    """One server for all tests, which takes a while to open and close; each test gives it an application."""

    def __init__(self) -> None:
        self.app: ASGIApp = Starlette()
        self.url = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)
