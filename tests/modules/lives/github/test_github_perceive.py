"""Notifications over the town's GitHub: none is lost, and looks where nothing changed cost no request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.github.client import GitHub
from adapters.web.client import http_transport_factory
from common.clock import FakeClock
from common.result import Ok
from modules.lives.github.engagement import GitHubPerceiver, GitHubState
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.github_threads.threads import THREAD, ThreadInbox, thread_of
from modules.services.work.table import WorkTable
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import StoredRepo
from town.serving import serve

LOOKS = int(os.environ.get("GITHUB_LOOKS", "100"))
"""How many looks are taken, two minutes apart; 5040 are a week."""
BETWEEN = 40
"""So many looks lie between two mentions."""


@dataclass
class Place:
    clock: FakeClock
    network: GitHubNetwork
    repo: StoredRepo
    github: GitHub
    state: GitHubState
    work: WorkTable
    perceiver: GitHubPerceiver

    def mention(self, number: int) -> None:
        issue = self.repo.issues[1]
        kit = self.network.find("kit")
        assert issue
        assert kit
        self.network.write_comment(self.repo, issue, kit, f"@rowan number {number}?")

    async def settle(self) -> int:
        """Settle what waits, and return how much that was."""
        waiting = await self.work.due([THREAD])
        for one in waiting:
            await self.work.settle(one, "done", "commented")
            assert isinstance(await self.github.notifications.mark_read(thread_of(one).notice), Ok)
        return len(waiting)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = FakeClock()
    network = GitHubNetwork(clock=clock)
    rowan = network.create_account("rowan")
    repo = network.create_repo(network.create_account("acme"), "site")
    network.open_issue(repo, network.create_account("kit"), title="Which layout?", body="Narrow or wide?")
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    async with serve(github_app(network, meter=GitHubMeter(clock, known=5000))) as url:
        transport = http_transport_factory(url, private_ok=True)
        github = GitHub(
            api_url=url, login="rowan", token=rowan.token, clock=clock, min_spacing_s=0, transport=transport
        )
        state = GitHubState(tmp_path, database, clock)
        work = WorkTable(database, clock)
        threads = ThreadInbox(work, clock, 0.0)
        perceiver = GitHubPerceiver(state, threads, github, clock, owner_did="did:plc:owner", watched=tuple)
        yield Place(clock, network, repo, github, state, work, perceiver)
        await github.aclose()
    await database.close()


async def test_of_many_looks_most_cost_nothing_and_every_mention_is_found(place: Place) -> None:
    found, mentioned, paid = 0, 0, 0
    for look in range(LOOKS):
        if look % BETWEEN == BETWEEN // 2:
            place.mention(mentioned)
            mentioned += 1
        before = place.github.rate.remaining
        looked = await place.perceiver.look_at_notifications()
        assert isinstance(looked, Ok)
        paid += place.github.rate.remaining < before
        found += await place.settle()
        await place.clock.advance(120)
    assert found >= mentioned > 0
    assert paid / LOOKS <= 0.2, paid


async def test_a_look_comes_not_sooner_than_github_asks_for(place: Place) -> None:
    assert await place.perceiver.look_at_notifications() == Ok(0)
    place.mention(1)
    await place.clock.advance(30)
    assert await place.perceiver.look_at_notifications() == Ok(0)
    await place.clock.advance(31)
    assert await place.perceiver.look_at_notifications() == Ok(1)
    (row,) = await place.work.due([THREAD])
    waiting = thread_of(row)
    assert (waiting.key, waiting.kind, waiting.reason) == ("acme/site#1", "issue", "mention")
    assert place.state.seen_at >= waiting.at
