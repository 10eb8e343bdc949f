"""A mind that lives elsewhere: requests go on to another chat-completions service, answers stream back untouched.

Nothing is kept here; a request cut in the middle is cut for the caller too, who tries again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx
from starlette.responses import JSONResponse, Response, StreamingResponse

from adapters.web.transport import WebTransport
from town.model.types import Json
from town.model.wire import error_body

_CONNECT_S = 10.0
_READ_S = 180.0
_PASSED_ON = ("content-type", "retry-after", "x-request-id")


@dataclass(frozen=True, slots=True)
class GatewayMind:
    """Where the real mind is. `base_url` ends before `/chat/completions`; `model` is its own name for it."""

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
        """Send `body` on, for our model, with our key, without the field that only the scripted mind reads."""
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
