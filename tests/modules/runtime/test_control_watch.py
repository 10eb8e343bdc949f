"""The owner's record on a real network, read by the loop that watches it; each change is told once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from adapters.atproto.client import PublicRepos
from adapters.web.client import WebClient, WebTransport
from common.clock import FakeClock
from common.redact import Redactor
from common.result import ApiResult, Err, Ok
from modules.runtime.console import SilentConsole
from modules.runtime.control import COLLECTION, EVERY_SOUL, Control, ControlLoop
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from tests.running_town import RunningTown
from town.atproto.service import Fault

LIST = "com.atproto.repo.listRecords"


@dataclass
class Watched:
    """A loop that watches, and what it reads and says."""

    running_town: RunningTown
    control: Control
    clock: FakeClock
    console: SilentConsole
    loop: ControlLoop
    freed: list[str]

    def give(self, key: str, **value: object) -> None:
        self.running_town.network.put(
            self.running_town.account("owner"), COLLECTION, key, {"$type": COLLECTION, **value}
        )

    def take(self, key: str) -> None:
        self.running_town.network.delete(self.running_town.account("owner"), COLLECTION, key)

    async def minute(self) -> None:
        await self.clock.advance(60)
        await self.loop.run()

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(kind, message) for kind, message, _ in self.console.lines]


@asynccontextmanager
async def watching(running_town: RunningTown, own_did: str) -> AsyncIterator[Watched]:
    memory = running_town.root / "memory"
    memory.mkdir(exist_ok=True)
    web = WebClient(WebTransport(allow=[running_town.atproto_url]))

    async def fetch(url: str) -> ApiResult[bytes]:
        fetched = await web.fetch(url, kinds=["application/json"], max_bytes=1_000_000, deadline_s=5, named=True)
        return fetched if isinstance(fetched, Err) else Ok(fetched.data.body)

    async def note() -> None:
        freed.append(str(control.standing()))

    freed: list[str] = []
    clock, console, control = FakeClock(), SilentConsole(), Control(memory)
    database = await Database.open(memory / "soul.db", MIGRATIONS)
    loop = ControlLoop(
        control=control,
        repos=PublicRepos(fetch, clock=clock, home_url=running_town.atproto_url),
        journal=Journal(database, console, clock, Redactor()),
        clock=clock,
        owner_did=running_town.account("owner"),
        own_did=lambda: own_did,
        when_free=note,
    )
    yield Watched(running_town, control, clock, console, loop, freed)
    await web.aclose()
    await database.close()


@pytest.fixture
async def watched(running_town: RunningTown) -> AsyncIterator[Watched]:
    async with watching(running_town, running_town.account("rowan")) as watched:
        yield watched


@pytest.mark.parametrize("everybody", [True, False])
async def test_a_record_pauses_as_long_as_it_stands(watched: Watched, *, everybody: bool) -> None:
    key = EVERY_SOUL if everybody else watched.running_town.account("rowan")
    await watched.loop.run()
    assert watched.control.standing().may_act
    watched.give(key, reason="asleep")
    await watched.minute()
    assert watched.control.standing().reasons == ("paused by the owner's record on Bluesky: asleep",)
    watched.take(key)
    await watched.minute()
    assert watched.control.standing().may_act
    assert watched.said == [
        ("warn", "Paused: nothing public leaves"),
        ("done", "Going on: what waited may leave again"),
    ]


async def test_a_record_for_another_soul_or_of_another_account_pauses_nobody_here(watched: Watched) -> None:
    watched.give(watched.running_town.account("maren"), reason="you rest")
    stranger = watched.running_town.account("kit")
    watched.running_town.network.put(stranger, COLLECTION, EVERY_SOUL, {"$type": COLLECTION})
    await watched.loop.run()
    assert watched.control.standing().may_act
    assert watched.said == []


async def test_that_the_record_is_there_is_what_counts(watched: Watched) -> None:
    watched.give(EVERY_SOUL, reason=7, createdAt="never")
    await watched.loop.run()
    assert watched.control.standing().reasons == ("paused by the owner's record on Bluesky",)


@pytest.mark.parametrize("paused", [True, False])
async def test_what_was_last_known_holds_while_the_repo_cannot_be_read_and_over_restarts(
    running_town: RunningTown, watched: Watched, *, paused: bool
) -> None:
    if paused:
        watched.give(EVERY_SOUL, reason="asleep")
    await watched.loop.run()
    running_town.faults.arm(Fault("bad_gateway", LIST, times=3))
    for _ in range(3):
        await watched.minute()
    assert watched.control.standing().paused is paused
    assert [message for _, message in watched.said].count(
        "The owner's repo cannot be read; what was last known there holds"
    ) == 1
    assert Control(running_town.root / "memory").standing().paused is paused
    watched.give(EVERY_SOUL, reason="asleep") if not paused else watched.take(EVERY_SOUL)
    await watched.minute()
    assert watched.control.standing().paused is not paused


async def test_before_the_login_nobody_is_asked(running_town: RunningTown) -> None:
    async with watching(running_town, "") as watched:
        watched.give(EVERY_SOUL)
        await watched.loop.run()
        assert watched.control.standing().may_act


async def test_the_repo_is_read_once_a_minute_and_the_files_each_time(watched: Watched) -> None:
    await watched.loop.run()
    watched.give(EVERY_SOUL, reason="asleep")
    await watched.clock.advance(30)
    await watched.loop.run()
    assert watched.control.standing().may_act
    watched.control.pause("by hand")
    await watched.loop.run()
    await watched.loop.run()
    assert watched.said == [("warn", "Paused: nothing public leaves")]
    await watched.clock.advance(30)
    await watched.loop.run()
    assert len(watched.control.standing().reasons) == 2


async def test_each_standing_is_one_line_and_one_entry(watched: Watched) -> None:
    watched.control.enter_safe_mode("3 starts within 20 s")
    await watched.loop.tell()
    await watched.loop.tell()
    watched.control.resume()
    await watched.loop.tell()
    kinds = [entry.entry.data["act"] for entry in reversed(await watched.loop.journal.recent(10))]
    assert kinds == ["safe_mode", "resumed"]
    assert [kind for kind, _ in watched.said] == ["error", "done"]


async def test_only_a_look_that_finds_nothing_against_acting_says_that_we_are_free(watched: Watched) -> None:
    watched.give(EVERY_SOUL)
    await watched.loop.run()
    assert watched.freed == []
    watched.take(EVERY_SOUL)
    watched.control.pause()
    await watched.minute()
    assert watched.freed == []
    watched.control.resume()
    await watched.loop.run()
    assert watched.freed == ["may act"]
