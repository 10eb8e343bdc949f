"""Proves that who looks for one that sleeps is not blind to direct messages unless its password allows none."""

from __future__ import annotations

from pathlib import Path

import httpx

from adapters.atproto.newest import Newest, NewestReader, shared_request
from common.clock import SystemClock
from common.result import Err, Ok
from tests.running_town import RunningTown
from town.faults import Fault


async def test_a_log_of_messages_that_cannot_be_read_is_no_empty_one(running_town: RunningTown, tmp_path: Path) -> None:
    home = running_town.make_home("rowan")
    given = dict(line.split("=", 1) for line in (home.root / ".env").read_text().splitlines() if "=" in line)
    request = shared_request(httpx.AsyncHTTPTransport())
    reader = NewestReader(
        request,
        service_url=running_town.atproto_url,
        identifier=given["AGENT_BLUESKY_USERNAME"].strip("'\""),
        password=given["AGENT_BLUESKY_PASSWORD"].strip("'\""),
        session_path=tmp_path / "session.json",
        clock=SystemClock(),
        messages=True,
    )
    running_town.faults.arm(Fault("bad_request", "chat.bsky.convo.getLog"))
    assert isinstance(await reader.read(), Err)
    first = await reader.read()
    assert isinstance(first, Ok)
    assert isinstance(first.data, Newest)
    assert first.data.log
    await request.close()
