"""Serving on loopback: an address, a clear word when the port is taken, an end that does not wait for anyone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import MethodType
from typing import NoReturn, cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from common.errors import ConfigError
from tests.loopback import held_port
from town.serving import connection_dropper, serve


async def hello(request: Request) -> Response:
    return PlainTextResponse(f"hello on {request.url.hostname}")


async def endless(_: Request) -> Response:
    async def ticks() -> AsyncIterator[bytes]:
        yield b"tick\n"
        await asyncio.Event().wait()

    return StreamingResponse(ticks())


async def stubborn(request: Request) -> NoReturn:
    request.app.state.reached.set()
    await asyncio.Event().wait()
    raise AssertionError("nobody ends that")


async def dropping(request: Request) -> Response:
    connection_dropper(request.scope)()
    return Response()


async def prompt(request: Request) -> Response:
    transport = cast("asyncio.Transport", cast("MethodType", connection_dropper(request.scope)).__self__)
    return PlainTextResponse(str(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))


APP = Starlette(
    routes=[
        Route("/", hello),
        Route("/endless", endless),
        Route("/stubborn", stubborn),
        Route("/drop", dropping),
        Route("/prompt", prompt),
    ]
)


async def test_an_application_answers_on_loopback_and_is_gone_afterwards() -> None:
    async with serve(APP) as url, httpx.AsyncClient() as client:
        assert url.startswith("http://127.0.0.1:")
        assert (await client.get(url)).text == "hello on 127.0.0.1"
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(url)


async def test_what_is_sent_leaves_at_once() -> None:
    async with serve(APP) as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/prompt")).text == "1"


async def test_a_port_that_is_taken_is_named_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use") as caught:
            async with serve(APP, port=port):
                pass
    assert "another port" in caught.value.remedy


async def test_a_port_can_be_chosen_and_used_again_at_once() -> None:
    with held_port() as port:
        for _ in range(2):
            async with serve(APP, port=port) as url, httpx.AsyncClient() as client:
                assert (await client.get(url)).status_code == 200


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


async def test_an_application_can_drop_the_connection_without_an_answer() -> None:
    async with serve(APP) as url, httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"{url}/drop")
        assert (await client.get(url)).status_code == 200


async def test_an_application_that_does_not_start_is_an_error() -> None:
    @asynccontextmanager
    async def broken(_: Starlette) -> AsyncIterator[NoReturn]:
        raise ValueError("no floor")
        yield

    with pytest.raises(RuntimeError, match="did not start"):
        async with serve(Starlette(lifespan=broken)):
            pass
