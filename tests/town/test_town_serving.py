"""Serving on loopback: an address, a clear word when the port is taken, an end that does not wait for anyone."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from common.errors import ConfigError
from town.serving import serve


async def endless(_: Request) -> Response:
    async def ticks() -> AsyncIterator[bytes]:
        yield b"tick\n"
        await asyncio.Event().wait()

    return StreamingResponse(ticks())


async def stubborn(request: Request) -> NoReturn:
    request.app.state.reached.set()
    await asyncio.Event().wait()
    raise AssertionError("nobody ends that")


APP = Starlette(routes=[Route("/endless", endless), Route("/stubborn", stubborn)])


async def test_a_port_that_is_taken_is_named_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use") as caught:
            async with serve(APP, port=port):
                pass
    assert "another port" in caught.value.remedy


@pytest.mark.parametrize("host", ["192.0.2.1", "::1", "a..b", "gärten..b"])
async def test_a_host_at_which_this_machine_cannot_listen_is_named_with_a_remedy(host: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(host)) as caught:
        async with serve(APP, host=host):
            pass
    assert "127.0.0.1" in caught.value.remedy


async def test_it_ends_with_open_streams_and_stuck_requests() -> None:
    reached = APP.state.reached = asyncio.Event()
    async with httpx.AsyncClient() as client, asyncio.TaskGroup() as tasks:
        async with serve(APP) as url:
            opened = await client.send(client.build_request("GET", f"{url}/endless"), stream=True)
            stuck = tasks.create_task(_swallowed(client, f"{url}/stubborn"))
            await reached.wait()
        await opened.aclose()
        stuck.cancel()


async def _swallowed(client: httpx.AsyncClient, url: str) -> None:
    with pytest.raises(httpx.TransportError):
        await client.get(url)


async def test_an_application_that_does_not_start_is_an_error() -> None:
    @asynccontextmanager
    async def broken(_: Starlette) -> AsyncIterator[NoReturn]:
        raise ValueError("no floor")
        yield

    with pytest.raises(RuntimeError, match="did not start"):
        async with serve(Starlette(lifespan=broken)):
            pass
