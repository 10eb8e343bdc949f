"""Tests of checking Bluesky for a SOUL that sleeps: it sees what asks for an answer, and logs in only once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from adapters.atproto.newest import AccountNewest, SharedRequests, shared_requests
from adapters.atproto.records import POST
from common.clock import SystemClock
from common.result import Err, Ok
from tests.running_town import PASSWORD, RunningTown
from town.atproto.index import FOLLOW
from town.faults import Fault

LIST, LOG = "app.bsky.notification.listNotifications", "chat.bsky.convo.getLog"


@asynccontextmanager
async def shared() -> AsyncIterator[SharedRequests]:
    requests = shared_requests(httpx.AsyncHTTPTransport())
    try:
        yield requests
    finally:
        await requests.request.close()


FACET = "app.bsky.richtext.facet"


def newest(town: RunningTown, requests: SharedRequests, folder: Path, password: str = PASSWORD) -> AccountNewest:
    town.account("rowan")
    return AccountNewest(
        requests,
        service_url=town.atproto_url,
        identifier="rowan.test",
        password=password,
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


async def test_a_password_without_access_to_direct_messages_is_no_news(
    running_town: RunningTown, tmp_path: Path
) -> None:
    rowan = running_town.account("rowan")
    password = running_town.network.sessions.create_app_password(rowan, "for posts alone")["password"]
    async with shared() as requests:
        reader = newest(running_town, requests, tmp_path, password)
        assert [await reader.came(), await reader.came()] == [Ok(data=False)] * 2


async def test_a_late_mention_behind_many_newer_ones_is_news(running_town: RunningTown, tmp_path: Path) -> None:
    rowan, kit = running_town.account("rowan"), running_town.account("kit")
    for number in range(30):
        running_town.network.post_as(kit, f"Morning @rowan.test, tin or slate {number}?")
    mark = {"index": {"byteStart": 0, "byteEnd": 11}, "features": [{"$type": f"{FACET}#mention", "did": rowan}]}
    late = {"$type": POST, "text": "@rowan.test?", "createdAt": "2026-01-05T08:00:00Z", "facets": [mark]}
    async with shared() as requests:
        reader = newest(running_town, requests, tmp_path)
        assert await reader.came() == Ok(data=False)
        running_town.network.put(kit, POST, "3lbw2sgq2ks2v", late)
        assert await reader.came() == Ok(data=True)


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


async def test_a_message_of_somebody_is_news_and_the_accounts_own_marks_and_messages_are_none(
    running_town: RunningTown, tmp_path: Path
) -> None:
    rowan, kit, chat = running_town.account("rowan"), running_town.account("kit"), running_town.network.chat
    running_town.network.create(rowan, FOLLOW, {"subject": kit, "createdAt": "2026-01-05T08:00:00Z"})
    talk = chat.begin(kit, rowan)
    async with shared() as requests:
        reader = newest(running_town, requests, tmp_path)
        chat.send(kit, talk, "Tin or slate?", {})
        chat.send(rowan, talk, "Tin.", {})
        assert await reader.came() == Ok(data=False)
        for _ in range(3):
            first = dict(reader.seen)
            chat.read(rowan, talk, None)
            chat.send(rowan, talk, "Slate.", {})
            assert await reader.came() == Ok(data=False)
            assert reader.seen != first, "the next look begins behind them"
            chat.read(kit, talk, None)
        chat.send(rowan, talk, "And moss.", {})
        chat.send(kit, talk, "Why?", {})
        assert await reader.came() == Ok(data=True)
        assert await reader.came() == Ok(data=True), "until it was looked at"


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
