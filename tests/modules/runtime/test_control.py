"""Proves who may give the signs that stop a SOUL, what they mean, and that doubt counts as a stop.

The loop reads the owner's record from a real network, and tells each change once. It tells a newer published version
once, and changes nothing; an answer that names no version counts as a failure to read.
"""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from adapters.atproto.client import PublicRepos
from adapters.web.client import WebClient, WebTransport
from common.clock import FakeClock, ScaledClock
from common.redact import Redactor
from common.result import ApiResult, Err, Ok
from modules.runtime.console import SilentConsole
from modules.runtime.control import (
    COLLECTION,
    EVERY_SOUL,
    STARTS,
    WINDOW_S,
    Control,
    Standing,
    forget_starts,
    note_start,
)
from modules.runtime.control_watch import ControlLoop
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.rows import Journal
from modules.runtime.version_check import VersionLoop, is_newer, version_in
from modules.services.outbox.bodies import OpaqueBody
from modules.services.outbox.gates import PauseGate
from modules.services.outbox.types import Intent
from tests.running_town import RunningTown
from town.atproto.service import Fault
from town.serving import serve

LIST = "com.atproto.repo.listRecords"


@dataclass
class Watched:
    """A control loop, what it reads, and what it says."""

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


NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
INTENT = Intent(
    "id",
    "post",
    "",
    OpaqueBody(),
    "",
    "",
    "rkey",
    None,
    "2026-01-05T12:00:00.000Z",
    "2026-01-06T12:00:00.000Z",
    "pending",
)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / ".memory"


@pytest.fixture
def control(memory: Path) -> Control:
    memory.mkdir()
    return Control(memory)


def test_a_pause_holds_with_its_reason_until_it_is_taken_back(control: Control) -> None:
    control.pause(" a  long\nnight ")
    assert control.standing() == Standing(paused=True, reasons=("paused by the owner: a long night",))
    assert control.resume() == Standing()


def test_a_second_pause_without_a_reason_keeps_the_first_one_and_a_new_reason_replaces_it(control: Control) -> None:
    assert control.pause_reason() is None
    control.pause("holiday")
    control.pause(" ")
    assert control.pause_reason() == "holiday"
    control.pause("still away")
    assert control.standing().reasons == ("paused by the owner: still away",)
    control.resume()
    control.pause()
    assert control.pause_reason() == ""


def test_touching_the_file_is_enough(control: Control, memory: Path) -> None:
    (memory / "PAUSE").touch()
    assert control.standing() == Standing(paused=True, reasons=("paused by the owner",))
    (memory / "PAUSE").unlink()
    assert control.standing().may_act


def test_a_sign_that_cannot_be_read_still_stops(control: Control, memory: Path) -> None:
    (memory / "PAUSE").mkdir()
    assert control.standing().paused
    assert control.write_block_reason() == "paused by the owner"


def test_a_reason_of_any_bytes_and_any_length_becomes_one_short_line(control: Control, memory: Path) -> None:
    (memory / "PAUSE").write_bytes(b"\xff\xfe \n" + b"x" * 10_000)
    (reason,) = control.standing().reasons
    assert "\n" not in reason
    assert len(reason) < 400
    control.heed_record("half a pair \ud83d")
    assert control.standing().paused


def test_before_the_first_life_a_pause_can_be_given_already(memory: Path) -> None:
    Control(memory).pause()
    assert Control(memory).standing().paused
    assert memory.stat().st_mode & 0o077 == 0


def test_resuming_leaves_the_owners_record_in_force_and_says_so(control: Control) -> None:
    control.pause("one")
    control.heed_record("asleep")
    control.enter_safe_mode("3 starts within 20 s")
    assert control.standing().safe_mode
    left = control.resume()
    assert left == Standing(paused=True, reasons=("paused by the owner's record on Bluesky: asleep",))
    control.heed_record(None)
    assert control.standing().may_act


def test_the_gate_keeps_everything_in_while_any_sign_stands(control: Control) -> None:
    with sqlite3.connect(":memory:") as connection:
        assert PauseGate(control)(connection, INTENT, NOW) is None
        control.enter_safe_mode("3 starts within 20 s")
        wait = PauseGate(control)(connection, INTENT, NOW)
    connection.close()
    assert wait is not None
    assert wait.reason == "safe mode: 3 starts within 20 s"
    assert 0 < wait.seconds <= 5


def starts(memory: Path, control: Control, *seconds: float, speed: float = 1.0) -> list[bool]:
    clocks = (FakeClock(NOW + timedelta(seconds=second)) for second in seconds)
    return [note_start(memory, control, ScaledClock(clock, speed)).safe_mode for clock in clocks]


@pytest.mark.parametrize(
    ("seconds", "speed", "last"),
    [
        ((0, 1), 1, False),
        ((0, 1, 2), 1, True),
        ((0, 30, 59.9), 1, True),
        ((0, 30, 60), 1, False),
        ((0, 1, 2), 1000, False),
        ((0, 0.01, 0.02), 1000, True),
    ],
)
def test_the_third_start_within_a_minute_only_listens(
    control: Control, memory: Path, seconds: tuple[float, ...], speed: float, *, last: bool
) -> None:
    assert starts(memory, control, *seconds, speed=speed)[-1] is last
    assert control.standing().safe_mode is last
    assert (STARTS, WINDOW_S) == (3, 60)


def test_safe_mode_is_told_with_what_brought_it_and_ends_with_the_next_calm_start(
    control: Control, memory: Path
) -> None:
    starts(memory, control, 0, 10, 25)
    assert control.standing().reasons == ("safe mode: 3 starts within 25 s",)
    assert starts(memory, control, 600) == [False]
    assert control.standing().may_act


def test_after_the_owner_resumed_the_next_start_is_the_first_again(control: Control, memory: Path) -> None:
    starts(memory, control, 0, 1, 2)
    control.resume()
    forget_starts(memory)
    assert starts(memory, control, 3, 4) == [False, False]
    assert starts(memory, control, 5) == [True]


@pytest.mark.parametrize("content", ["{", '{"starts": 3}', '{"starts": ["soon", null]}'])
def test_whatever_lies_in_the_file_a_start_is_remembered(control: Control, memory: Path, content: str) -> None:
    (memory / "starts.json").write_text(content)
    assert starts(memory, control, 0, 1, 2) == [False, False, True]


@pytest.mark.parametrize(
    ("published", "newer"),
    [
        ("0.1.1", True),
        ("0.2", True),
        ("0.10.0", True),
        ("0.1.0", False),
        ("0.2.0-rc1", False),
        ("", False),
        ("latest", False),
        ("9" * 100, False),
    ],
)
def test_only_a_later_release_is_newer(published: str, *, newer: bool) -> None:
    assert is_newer(published, "0.1.0") is newer


@pytest.mark.parametrize(("published", "newer"), [("0.2.0", True), ("0.2.1", True), ("0.1.9", False)])
def test_a_development_version_makes_room_for_the_release_that_it_names(published: str, *, newer: bool) -> None:
    assert is_newer(published, "0.2.0.dev0") is newer


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ('{"version": "1.2.3"}', "1.2.3"),
        ('[project]\nname = "x"\nversion = "1.2.3"', "1.2.3"),
        ('{"version": 7}', ""),
        ("[]", ""),
        ("[" * 5000, ""),
    ],
)
def test_json_and_toml_are_read_and_nothing_else(document: str, version: str) -> None:
    assert version_in(document) == version


async def test_a_newer_version_is_told_once_and_so_is_each_failure_to_read_it(database: Database) -> None:
    newer = '[project]\nversion = "0.2.0"'
    answers = ["", '{"version": "0.1.0"}', "nothing", "nothing", newer, newer, '{"version": "0.3.0"}']
    asked: list[str] = []

    async def publish(request: Request) -> Response:
        asked.append(str(request.url.query))
        answer = answers.pop(0)
        return PlainTextResponse(answer, status_code=200 if answer else 503)

    clock, console = FakeClock(), SilentConsole()
    journal = Journal(database, console, clock, Redactor())
    async with serve(Starlette(routes=[Route("/version", publish)])) as url:
        web = WebClient(WebTransport(allow=[url]))
        loop = VersionLoop(f"{url}/version", web, journal, clock, own="0.1.0")
        outcomes = []
        for _ in range(7):
            outcomes.append((await loop.run()).reason)
            await clock.advance(300)
        await web.aclose()
    lines = [(kind, message) for kind, message, _ in console.lines]
    assert outcomes[:4] == [
        "the answer is HTTP 503",
        "0.1.0 is published, this is 0.1.0",
        "the answer names no version",
        "the answer names no version",
    ]
    assert lines == [
        ("warn", "The published version could not be read"),
        ("warn", "The published version could not be read"),
        ("warn", "Version 0.2.0 is published, this is 0.1.0"),
        ("warn", "Version 0.3.0 is published, this is 0.1.0"),
    ]
    assert len(set(asked)) == 7, "no cache on the way can answer"
