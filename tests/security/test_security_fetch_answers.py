"""Nobody can drown the program: bombs, endless bodies, drips, huge headers and unwelcome types all end."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import httpx
import pytest

from common.result import Err, Ok
from tests.security.small_internet import SmallInternet, fetch, moved, page


@pytest.mark.slow
async def test_a_decompression_bomb_ends_at_the_limit_and_takes_no_memory(internet: SmallInternet) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    internet.say(page(bomb, "content-encoding: gzip"))
    tracemalloc.start()
    result = await fetch(internet, "http://public.example/", max_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result == Err("the answer is larger than 1000000 bytes", kind="invalid")
    assert peak < 8_000_000, f"200 MiB were packed into {len(bomb)} bytes; reading them took {peak}"


async def test_an_sdk_is_kept_from_bombs_too(internet: SmallInternet) -> None:
    internet.say(page(gzip.compress(bytes(80 << 20)), "content-encoding: gzip"))
    async with httpx.AsyncClient(transport=internet.transport()) as client:
        with pytest.raises(httpx.TransportError, match="too large"):
            await client.get("http://public.example/")


async def test_what_is_packed_honestly_is_unpacked(internet: SmallInternet) -> None:
    internet.say(page(gzip.compress(b"hello " * 50_000), "content-encoding: gzip"))
    result = await fetch(internet, "http://public.example/", max_bytes=300_000)
    assert isinstance(result, Ok)
    assert result.data.text == "hello " * 50_000
    assert "accept-encoding: gzip\r\n" in internet.seen[0].lower()


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
async def test_a_packing_that_was_not_asked_for_is_refused(internet: SmallInternet, encoding: str) -> None:
    internet.say(page(b"\x00" * 100, f"content-encoding: {encoding}"))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


async def test_gzip_that_is_none_is_an_error_of_the_answer(internet: SmallInternet) -> None:
    internet.say(page(b"no gzip at all", "content-encoding: gzip"))
    assert await fetch(internet, "http://public.example/") == Err("the answer is no gzip", kind="invalid")


async def test_an_endless_body_ends_at_the_limit(internet: SmallInternet) -> None:
    async def endless(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    internet.answer = endless
    result = await fetch(internet, "http://public.example/", max_bytes=500_000)
    assert result == Err("the answer is larger than 500000 bytes", kind="invalid")


async def test_a_slow_drip_ends_at_the_deadline(internet: SmallInternet) -> None:
    async def drip(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    internet.answer = drip
    result = await fetch(internet, "http://public.example/", deadline_s=0.3)
    assert result == Err("no whole answer within 0.3 s", kind="transient")


async def test_redirects_share_one_deadline(internet: SmallInternet) -> None:
    async def dawdle(_: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(moved("/on"))

    internet.answer = dawdle
    result = await fetch(internet, "http://public.example/", deadline_s=0.3)
    assert isinstance(result, Err)
    assert result.kind == "transient"


@pytest.mark.parametrize("header", [b"x: " + b"y" * 400_000, b"\r\n".join(b"h%d: v" % n for n in range(40_000))])
async def test_huge_headers_are_not_read_to_their_end(internet: SmallInternet, header: bytes) -> None:
    internet.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" + header + b"\r\n\r\nhello")
    result = await fetch(internet, "http://public.example/")
    assert result == Err("no answer (RemoteProtocolError)", kind="transient")


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/svg+xml", "", "text", "application/json; a=text/"])
async def test_a_type_that_is_not_welcome_is_not_read(internet: SmallInternet, kind: str) -> None:
    internet.say(page(kind=kind))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("404 No", "not_found"),
        ("403 No", "auth"),
        ("500 No", "transient"),
        ("429 No", "transient"),
        ("418 No", "invalid"),
    ],
)
async def test_an_error_of_the_server_is_told_by_its_status(internet: SmallInternet, status: str, kind: str) -> None:
    internet.say(page(status=status))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert (result.kind, result.status) == (kind, int(status[:3]))


async def test_an_unknown_character_set_is_read_as_well_as_it_can_be(internet: SmallInternet) -> None:
    internet.say(page("grüß".encode(), kind="text/plain; charset=martian"))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Ok)
    assert result.data.text == "grüß"
