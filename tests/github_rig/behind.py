"""An application that stands behind the judging proxy."""

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send


class Behind:
    """An application that sees the proxy's address as its own host, as the real service would."""

    def __init__(self, app: ASGIApp, url: str) -> None:
        self._app = app
        self._host = httpx.URL(url).netloc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope.get("headers", []) if name != b"host"]
        await self._app({**scope, "headers": [*headers, (b"host", self._host)]}, receive, send)
