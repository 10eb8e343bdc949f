"""Proves how the services on loopback end."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from town.serving import serve


async def test_a_request_that_still_runs_at_the_end_is_dropped_and_not_reported_as_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            began.set()
            await asyncio.Event().wait()

    async with httpx.AsyncClient() as client:
        async with serve(app) as url:
            asked = asyncio.create_task(client.get(url))
            await began.wait()
        with pytest.raises(httpx.HTTPError):
            await asked
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []
