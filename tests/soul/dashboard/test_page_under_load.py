"""Proves that whoever floods the page takes only a bounded number of connections and streams of its process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from soul.dashboard import app
from tests.patience import HANG_S
from tests.soul.dashboard.test_dashboard import make_home, opened
from town.serving import ConnectionLimits, serve


async def hello(_: Request) -> Response:
    return PlainTextResponse("hello")


@asynccontextmanager
async def connected(address: str, sent: bytes = b"") -> AsyncIterator[asyncio.StreamReader]:
    url = httpx.URL(address)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(sent)
        yield reader
    finally:
        writer.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Return what the server sent before it closed the connection."""
    async with asyncio.timeout(HANG_S):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_idle_connections_give_way_to_a_new_one() -> None:
    app = Starlette(routes=[Route("/", hello)])
    async with serve(app, limits=ConnectionLimits(connections=4, head_s=HANG_S)) as address, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(connected(address)) for _ in range(12)]
        async with httpx.AsyncClient() as client:
            assert (await client.get(address)).text == "hello"
        assert [await ended(reader) for reader in idle[:8]] == [b""] * 8


async def test_a_request_whose_head_does_not_arrive_in_time_is_closed_however_slowly_it_goes_on() -> None:
    app = Starlette(routes=[Route("/", hello)])
    whole = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"
    async with serve(app, limits=ConnectionLimits(connections=4, head_s=0.05)) as address:
        for sent in (b"", b"GET / HTT", whole + b"GET /"):
            async with connected(address, sent) as reader:
                assert (b"hello" in await ended(reader)) == sent.startswith(whole)


async def test_more_streams_than_the_page_bears_are_refused_and_the_page_still_opens(tmp_path: Path) -> None:
    async with opened(make_home(tmp_path / "rowan")) as client, AsyncExitStack() as stack:
        codes = [
            (await stack.enter_async_context(client.stream("GET", "/events"))).status_code
            for _ in range(app.STREAMS_PER_ADDRESS + 3)
        ]
        assert codes == [200] * app.STREAMS_PER_ADDRESS + [503] * 3
        assert (await client.get("/growing")).status_code == httpx.codes.OK
        await stack.aclose()

        async def opens_again() -> bool:
            async with client.stream("GET", "/events") as stream:
                return stream.status_code == httpx.codes.OK

        async with asyncio.timeout(HANG_S):
            while not await opens_again():
                pass
