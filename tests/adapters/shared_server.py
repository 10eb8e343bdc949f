"""One server on loopback that all tests of the adapters share."""

import asyncio
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send


class SharedServer:
    """One server for all tests, as opening and closing one takes a while; each test gives it an application."""

    def __init__(self) -> None:
        self.app: ASGIApp = Starlette()
        self.url = ""

    async def begin(self, app: ASGIApp) -> None:
        """Serve another test's application, once what an earlier test sent and did not wait for is answered."""
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
