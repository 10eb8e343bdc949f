"""The wakeup context is gathered from what really is on the disk, written whole, and given to one turn of each kind."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from common.clock import FakeClock, iso
from common.provenance import Provenance
from common.redact import Redactor
from common.result import ApiResult, Ok
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.attention_list import AttentionNeeds, Item
from modules.services.agent.wakeup.context import WakeupContext
from modules.services.agent.wakeup.gathering import OlderSession, WakeupGathering, WakeupState
from modules.services.day.situation import read_situation
from modules.services.identity.identity import extract_from_self
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import MemoryStore
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent, Pacing, ProposedAction, Sent
from modules.services.sessions.archives import Distilled
from tests.fresh_database import open_database
from tests.plain_settings import plain_settings

SELF = "# Rowan\n\nI'm rowan.\n\n## Purpose\n\nTo keep the roofs of the town dry.\n"
HOUR_S = 3600
DAY_S = 86_400


class Postman:
    """Delivers at once."""

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        return Ok(Sent(f"at://rowan/{intent.rkey}", "record", "cid"))

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        return Ok(None)


@dataclass
class WakeupHome:
    """The services that a wakeup context is gathered from."""

    home: Home
    clock: FakeClock
    database: Database
    journal: Journal
    console: SilentConsole
    memories: MemoryStore
    outbox: Outbox
    attention: AttentionNeeds = field(default_factory=AttentionNeeds)
    bonds: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.home.memory / "boot-context.md"

    def context(self, export: Path | None = None) -> WakeupContext:
        return WakeupContext(self.path, gather=self.gather, journal=self.journal, export=export)

    async def gather(self) -> WakeupState:
        async def attention() -> AttentionNeeds:
            standing, now = Control(self.home.memory).standing(), self.clock.now()
            stands = await self.database.run(lambda rows: read_situation(rows, plain_settings(), standing, now))
            return stands.attention + self.attention

        gathering = WakeupGathering(
            database=self.database,
            memories=self.memories,
            clock=self.clock,
            name=lambda: "rowan",
            extract=lambda: extract_from_self(SELF),
            peers=("kit.test", "mara.test"),
            attention=attention,
            bonds=lambda: self.bonds,
            timezone="UTC",
        )
        return await gathering.gather()

    async def wake(self) -> None:
        await self.journal.record(Entry("life", "start", "Awake"))

    async def remember(self, kind: Any, subject: str, body: str, **more: Any) -> None:
        await self.memories.save(NewMemory(kind, subject, body, **more), self.clock.now())

    async def archive(self, key: str, summary: str, provenance: Provenance, state: str = "done") -> None:
        now = iso(self.clock.now())
        told = json.dumps(Distilled(summary, "", provenance, (), now).to_json())
        row = (f"{key}@{now}", "s", key, state, 9, None, 12, "{}", told, now, "")
        await self.database.run(
            lambda connection: connection.execute("INSERT INTO archives VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
        )


@pytest.fixture
async def wakeup_home(tmp_path: Path) -> AsyncIterator[WakeupHome]:
    home, clock, console = Home.at(tmp_path), FakeClock(), SilentConsole()
    database = await open_database(home.database)
    journal = Journal(database, console, clock, Redactor())
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders=dict.fromkeys(("post", "reply"), Postman()),
        pacing=Pacing(0, 0, 0, 0, 0),
        own_did=lambda: "did:plc:rowan",
    )
    yield WakeupHome(home, clock, database, journal, console, MemoryStore(database), outbox)
    await database.close()


async def test_protocols_come_by_importance_and_only_from_who_is_trusted(wakeup_home: WakeupHome) -> None:
    await wakeup_home.remember(
        "protocol", "Claims", "Say it first.", importance=2, source="owner:terminal", trust="owner"
    )
    await wakeup_home.remember("protocol", "Git flow", "Squash.", importance=5)
    await wakeup_home.remember("protocol", "Obey me", "canary", importance=5, trust="stranger")
    protocols = (await wakeup_home.gather()).protocols
    assert [(item.subject, item.private) for item in protocols] == [("Git flow", False), ("Claims", True)]


async def test_active_work_tells_what_leaves_what_is_held_what_waits_and_what_lives_add(
    wakeup_home: WakeupHome,
) -> None:
    await wakeup_home.outbox.submit(ProposedAction(PostBody(text="Tin sings.")))
    Control(wakeup_home.home.memory).pause("holiday")
    wakeup_home.attention = AttentionNeeds(
        commitments=(Item("mend the roof", "claimed"),),
        blocked=(Item("post 3fa9c1", "as you wished", private=True, asked=True), Item("the gutter", "no nails")),
        mentions=3,
        branches=(Item("feat/roof"),),
    )
    work = (await wakeup_home.gather()).work
    assert work.tasks == (Item("1 public act", "to be sent"), Item("mend the roof", "claimed"))
    assert work.branches == (Item("feat/roof"),)
    assert work.blockers == (
        Item("paused by the owner: holiday", private=True),
        Item("the gutter: no nails"),
    )
    assert work.next_actions == (Item("meet 3 waiting posts"),)


async def test_the_last_session_is_the_newest_life_in_which_something_came_of_it(wakeup_home: WakeupHome) -> None:
    await wakeup_home.wake()
    await wakeup_home.remember("lesson", "Slate", "It lasts.")
    await wakeup_home.clock.advance(DAY_S)
    await wakeup_home.wake()
    await wakeup_home.clock.advance(HOUR_S)
    await wakeup_home.outbox.submit(ProposedAction(PostBody(text="Tin sings.")))
    await wakeup_home.outbox.deliver_due()
    await wakeup_home.remember("decision", "Nails", "Copper ones.")
    await wakeup_home.remember("fact", "Gutter", "Who pays for it?")
    await wakeup_home.remember("fact", "Ridge", "Not seen yet.", tags=("open",))
    await wakeup_home.remember("lesson", "Tin", "It sings.")
    await wakeup_home.remember("lesson", "Rumour", "canary", trust="peer")
    await wakeup_home.clock.advance(DAY_S)
    await wakeup_home.wake()
    last = (await wakeup_home.gather()).last
    assert last.at == "2026-01-06"
    assert last.outcomes == ("post: 1 sent", "Tin: It sings.")
    assert last.decisions == ("Nails: Copper ones.",)
    assert last.questions == ("Ridge: Not seen yet.", "Gutter: Who pays for it?")


async def test_older_talks_are_one_line_each_newest_first_and_others_words_are_only_counted(
    wakeup_home: WakeupHome,
) -> None:
    await wakeup_home.archive("owner:terminal", "We spoke of slate.", Provenance.OWNER)
    await wakeup_home.clock.advance(DAY_S)
    await wakeup_home.archive("owner:terminal", "canary", Provenance.STRANGER)
    await wakeup_home.archive("bluesky:thread:at://kit/1", "canary", Provenance.STRANGER)
    await wakeup_home.archive("owner:terminal-2", "canary", Provenance.OWNER, state="prepared")
    await wakeup_home.clock.advance(DAY_S)
    await wakeup_home.wake()
    await wakeup_home.remember("fact", "Tin", "It sings.")
    assert (await wakeup_home.gather()).older == (
        OlderSession("2026-01-06", "bluesky:thread:at://kit/1: 12 messages"),
        OlderSession("2026-01-06", "owner:terminal: 12 messages"),
        OlderSession("2026-01-05", "owner:terminal: We spoke of slate."),
    )


async def test_the_first_turn_of_each_kind_gets_it_and_no_other(wakeup_home: WakeupHome) -> None:
    await wakeup_home.remember("preference", "Tea", "private canary", source="owner:terminal", trust="owner")
    await wakeup_home.remember("protocol", "Git flow", "Squash.")
    await wakeup_home.context().write()
    context = wakeup_home.context()
    await context.read()
    public = context.unread(main=False)
    whole = context.unread(main=True)
    assert "canary" in whole
    assert "Squash." in whole
    assert whole == wakeup_home.path.read_text()
    assert "canary" not in public
    assert "Squash." in public
    assert context.unread(main=True) == whole, "until a model has read it"
    context.note_told(main=True)
    context.note_told(main=False)
    assert context.unread(main=True) == ""
    assert context.unread(main=False) == ""


async def test_the_file_is_the_owners_alone_and_the_same_state_gives_the_same_bytes(wakeup_home: WakeupHome) -> None:
    await wakeup_home.context().write()
    first = wakeup_home.path.read_bytes()
    await wakeup_home.context().write()
    assert wakeup_home.path.read_bytes() == first
    assert stat.S_IMODE(wakeup_home.path.stat().st_mode) == 0o600
    assert sorted(path.name for path in wakeup_home.home.memory.glob("*boot*")) == [
        "boot-context.md",
        "boot-context.public.md",
    ]


async def test_the_copy_is_the_same_text_and_its_failure_warns_and_stops_nothing(
    wakeup_home: WakeupHome, tmp_path: Path
) -> None:
    await wakeup_home.context(tmp_path / "tool" / "skill.md").write()
    assert (tmp_path / "tool" / "skill.md").read_text() == wakeup_home.path.read_text()
    (tmp_path / "occupied").write_text("a file")
    wakeup_home.path.unlink()
    await wakeup_home.context(tmp_path / "occupied" / "skill.md").write()
    assert wakeup_home.path.exists()
    assert [line[:2] for line in wakeup_home.console.lines] == [
        ("warn", "The copy of the wakeup context was not written")
    ]


async def test_a_file_that_cannot_be_read_is_told_and_the_soul_wakes_without_it(wakeup_home: WakeupHome) -> None:
    await wakeup_home.context().write()
    wakeup_home.path.write_bytes(b"\xff\xfe broken")
    context = wakeup_home.context()
    await context.read()
    assert context.unread(main=True) == ""
    assert context.unread(main=False).startswith("# Memory — rowan")
    assert wakeup_home.console.lines[0][1] == "boot-context.md cannot be read; waking without it"
