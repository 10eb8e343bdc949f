"""Tests of checking Bluesky for a SOUL that sleeps: it sees what asks for an answer, and logs in only once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from adapters.atproto.newest import AccountNewest, SharedRequests, shared_requests
from common.clock import SystemClock
from common.result import Err, Ok
from tests.running_town import PASSWORD, RunningTown
from town.faults import Fault

LIST, LOG = "app.bsky.notification.listNotifications", "chat.bsky.convo.getLog"


@asynccontextmanager
async def shared() -> AsyncIterator[SharedRequests]:
    requests = shared_requests(httpx.AsyncHTTPTransport())
    yield requests
    await requests.request.close()


def newest(town: RunningTown, requests: SharedRequests, folder: Path) -> AccountNewest:
    town.account("rowan")
    return AccountNewest(
        requests,
        service_url=town.atproto_url,
        identifier="rowan.test",
        password=PASSWORD,
        session_path=folder / "watch_session.json",
        clock=SystemClock(),
        messages=True,
    )


async def test_a_log_of_messages_that_cannot_be_read_is_no_empty_one(running_town: RunningTown, tmp_path: Path) -> None:
    async with shared() as requests:
        reader = newest(running_town, requests, tmp_path)
        running_town.faults.arm(Fault("bad_request", LOG))
        assert isinstance(await reader.came(), Err)
        assert await reader.came() == Ok(data=False)
        assert reader.seen["log"]


async def test_a_mention_is_news_and_a_like_is_none(running_town: RunningTown, tmp_path: Path) -> None:
    rowan, kit = running_town.account("rowan"), running_town.account("kit")
    uri, cid = running_town.network.post_as(rowan, "Slate.")
    async with shared() as requests:
        reader = newest(running_town, requests, tmp_path)
        assert await reader.came() == Ok(data=False)
        like = {"subject": {"uri": uri, "cid": cid}, "createdAt": "2026-01-05T12:00:00.000Z"}
        running_town.network.put(kit, "app.bsky.feed.like", "3lbw2sgq2ks2v", like)
        assert await reader.came() == Ok(data=False)
        running_town.network.post_as(kit, "Morning @rowan.test, tin or slate?")
        assert await reader.came() == Ok(data=True)


async def test_a_token_that_is_refused_is_renewed_and_the_session_outlives_the_process(
    running_town: RunningTown, tmp_path: Path
) -> None:
    async with shared() as requests:
        first = newest(running_town, requests, tmp_path)
        assert await first.came() == Ok(data=False)
        running_town.faults.arm(Fault("expired_token", LIST))
        running_town.faults.arm(Fault("bad_request", "com.atproto.server.createSession"))  # no login works
        assert await first.came() == Ok(data=False)
        assert await newest(running_town, requests, tmp_path).came() == Ok(data=False)
    assert (tmp_path / "watch_session.json").stat().st_mode & 0o777 == 0o600


async def test_a_service_that_was_asked_too_often_is_left_alone_by_all(
    running_town: RunningTown, tmp_path: Path
) -> None:
    async with shared() as requests:
        first, second = newest(running_town, requests, tmp_path), newest(running_town, requests, tmp_path)
        assert await first.came() == Ok(data=False)
        running_town.faults.arm(Fault("rate_limited", LIST))
        refused = await first.came()
        assert isinstance(refused, Err)
        assert refused.retry_after
        waits = await second.came()
        assert isinstance(waits, Err)
        assert waits.retry_after
        assert waits.status is None, "nothing was sent"
