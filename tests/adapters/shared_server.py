"""One server on loopback that all tests of the adapters share."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send


class SharedServer:
    """One server for all tests, which takes a while to open and close; each test gives it an application."""

    def __init__(self) -> None:
        self.app: ASGIApp = Starlette()
        self.url = ""

    async def begin(self, app: ASGIApp) -> None:
        """Give it the application of another test; what a test before sent and never waited for is answered first."""
        self.app = Starlette()
        place = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)
