"""The way out of one run: when it ends, no connection of it is left open."""

from __future__ import annotations

import asyncio
import gc
import warnings

from modules.runtime.sandbox.gateway import open_gateway

MUCH = b"x" * 8_000_000
"""More than what sockets and buffers between two programs hold."""


async def leave_while_data_waits() -> bytes:
    """Close a gateway while a server takes nothing of what the run sends; return what the run is told first."""
    ended = asyncio.Event()

    async def takes_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.transport.abort()

    server = await asyncio.start_server(takes_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_gateway(frozenset({("127.0.0.1", port)})) as gateway:
        reader, writer = await asyncio.open_unix_connection(gateway.folder / "socket")
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        told = await reader.readuntil(b"\r\n\r\n")
        writer.write(MUCH)
        for _ in range(50):
            await asyncio.sleep(0)
        late = await asyncio.open_unix_connection(gateway.folder / "socket")
    for one in (writer, late[1]):
        one.transport.abort()
    ended.set()
    server.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return told


def test_a_gateway_leaves_no_connection_open() -> None:
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        assert asyncio.run(leave_while_data_waits()).startswith(b"HTTP/1.1 200")
        gc.collect()
    assert [str(one.message) for one in noticed] == []
