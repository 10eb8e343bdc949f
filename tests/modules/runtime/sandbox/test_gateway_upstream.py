"""Proves what a run can request of a service through a gateway that holds a token, over the gateway's socket."""

import asyncio
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from modules.runtime.sandbox.gateway import Upstream, host_of, open_gateway
from town.serving import serve

READ = "/ada/garden.git/git-upload-pack"
UPSTREAM = Upstream(frozenset({("POST", READ)}), "Authorization: Basic c2VjcmV0", is_secure=False)


async def ask(socket: str, request: str) -> str:
    reader, writer = await asyncio.open_unix_connection(socket)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(
    ("method", "place", "passes"),
    [
        ("POST", READ, True),
        ("GET", READ, False),
        ("POST", "/ada/garden.git/git-receive-pack", False),
        ("POST", "/ada/other.git/git-upload-pack", False),
        ("POST", f"{READ}?service=git-receive-pack", False),
        ("POST", "/ada/garden.git/../other.git/git-upload-pack", False),
        ("CONNECT", "", False),
    ],
)
async def test_only_named_requests_reach_the_service_and_only_they_carry_the_token(
    method: str, place: str, *, passes: bool
) -> None:
    asked: list[tuple[str, str | None]] = []

    def answer(request: Request) -> Response:
        asked.append((request.url.path, request.headers.get("authorization")))
        return PlainTextResponse("a pack")

    async with serve(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])) as url:
        host = host_of(url)
        assert host
        async with open_gateway(frozenset([host]), UPSTREAM) as gateway:
            target = urlsplit(url).netloc if method == "CONNECT" else f"{url}{place}"
            request = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            told = await ask(f"{gateway.folder}/socket", request)
    assert "c2VjcmV0" not in f"{told}{gateway}"
    assert ("a pack" in told, "403 Forbidden" in told) == (passes, not passes)
    assert asked == ([(READ, "Basic c2VjcmV0")] if passes else [])


async def test_no_more_bytes_pass_a_gateway_than_it_was_given() -> None:
    sent = b"x" * 1_000_000

    async with serve(Starlette(routes=[Route(READ, lambda _: Response(sent), methods=["POST"])])) as url:
        host = host_of(url)
        assert host
        async with open_gateway(frozenset([host]), UPSTREAM, 200_000) as gateway:
            request = f"POST {url}{READ} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            told = await ask(f"{gateway.folder}/socket", request)
            again = await ask(f"{gateway.folder}/socket", request)
    assert 200_000 <= len(told) < 400_000
    assert "403 Forbidden" in again
