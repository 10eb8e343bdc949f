"""A thread waits for what led there, once for each source and each time, in the order of handling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.services.github_threads.threads import THREAD, NewThread, ThreadInbox, WaitingThread, leads_to, thread_of
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from tests.fresh_database import open_database
from tests.modules.lives.github.threads import at


@dataclass
class Inbox:
    threads: ThreadInbox
    work: WorkTable
    clock: FakeClock

    async def waiting(self) -> list[WaitingThread]:
        return [thread_of(one) for one in await self.rows()]

    async def rows(self) -> list[WorkItem]:
        return await self.work.due([THREAD])

    async def settle(self) -> None:
        for one in await self.rows():
            await self.work.settle(one, "done", "commented")


@pytest.fixture
async def inbox(tmp_path: Path) -> AsyncIterator[Inbox]:
    database, clock = await open_database(tmp_path / "soul.db"), FakeClock()
    work = WorkTable(database, clock)
    yield Inbox(ThreadInbox(work, clock, 0.0), work, clock)
    await database.close()


async def test_a_thread_waits_until_it_is_settled_and_waits_again_for_what_is_newer(inbox: Inbox) -> None:
    first = NewThread("acme/site", 7, "issue", "github_notification", at(1), reason="mention", notice="9")
    assert await inbox.threads.take_in([first, first]) == 1
    (earlier,) = await inbox.rows()
    await inbox.settle()
    assert await inbox.threads.take_in([first]) == 0
    assert await inbox.waiting() == []
    await inbox.clock.advance(1)
    newer = NewThread("Acme/site", 7, "issue", "github_notification", at(2), reason="comment", notice="9")
    assert await inbox.threads.take_in([newer]) == 1
    await inbox.work.settle(earlier, "done", "of the earlier one")
    (again,) = await inbox.waiting()
    assert (again.at, again.reason, again.key) == (at(2), "comment", "acme/site#7")
    assert again.cause_id != earlier.cause_id
    by_owner = NewThread("acme/site", 7, "issue", "bluesky_url_owner", at(1), uri="at://post")
    assert await inbox.threads.take_in([by_owner]) == 1
    assert [one.source for one in await inbox.waiting()] == ["bluesky_url_owner", "github_notification"]
    database = inbox.work.database
    assert await database.run(lambda connection: leads_to(connection, "ACME/site", 7))
    assert not await database.run(lambda connection: leads_to(connection, "acme/site", 70))


async def test_what_came_in_within_the_same_second_is_looked_at_once_more(inbox: Inbox) -> None:
    now = f"{inbox.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    told = NewThread("acme/site", 7, "issue", "github_notification", now, reason="mention", notice="9")
    for seconds, new in ((0.5, 1), (0.5, 0), (2, 1), (60, 0)):
        await inbox.clock.advance(seconds)
        assert await inbox.threads.take_in([told]) == new
        await inbox.settle()


async def test_what_the_owner_shows_us_comes_first_then_mentions_then_the_rest(inbox: Inbox) -> None:
    for new in (
        NewThread("acme/site", 1, "issue", "bluesky_url", at(1), uri="at://did:plc:ada/post/1"),
        NewThread("acme/site", 2, "issue", "bluesky_url", at(1), uri="at://did:plc:ada/post/2"),
        NewThread("acme/site", 3, "issue", "github_notification", at(1), reason="comment"),
        NewThread("acme/site", 4, "issue", "github_notification", at(1), reason="mention"),
        NewThread("acme/site", 5, "issue", "bluesky_url_owner", at(2), uri="at://did:plc:owner/post/1"),
    ):
        await inbox.threads.take_in([new])
    assert [one.number for one in await inbox.waiting()] == [5, 4, 1, 3, 2]
