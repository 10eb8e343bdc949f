"""A row whose body cannot be read is refused for good with one line, and hinders nothing else. Bluesky is the town."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.journal.journal import Journal
from modules.services.outbox.bodies import IntentKind, PostBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.senders.bluesky import UNREADABLE, BlueskySender
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.shared_server import SharedServer
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.pictures.sharing import pictures_in
from town.serving import serve

KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")
UNREADABLE_BODIES = ('{"text": 7, "uri": 7, "did": 7}', '{"text": "cut o', "[1]", "null", "7", "")


@dataclass
class OutboxInTown:
    """An outbox whose acts go to the town's Bluesky."""

    town: AtprotoTown
    database: Database
    console: SilentConsole
    outbox: Outbox

    async def submit(self, kind: IntentKind) -> Intent:
        own_post = f"at://{self.town.did('alice')}/app.bsky.feed.post/3kaaaaaaaaa2a"
        return (await self.outbox.submit(ProposedAction(body_of(kind, own_post), by_owner=True))).intent

    async def spoil(self, intent: Intent, stored: str, state: str = "pending") -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE intents SET body = ?, state = ? WHERE id = ?", (stored, state, intent.id))

        await self.database.run(write)

    async def now(self, intent: Intent) -> Intent:
        found = await self.outbox.get(intent.id)
        assert found is not None
        return found

    def errors(self) -> list[str]:
        return [f"{message} | {detail}" for kind, message, detail in self.console.lines if kind == "error"]


@pytest.fixture
async def outbox_in_town(tmp_path: Path) -> AsyncIterator[OutboxInTown]:
    server, console = SharedServer(), SilentConsole()
    async with serve(server) as url:
        server.url = url
        async with open_atproto_town(server, tmp_path) as town:
            atproto = await town.logged_in("alice")
            database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
            journal = Journal(database, console, town.clock, Redactor())
            pictures = pictures_in(tmp_path / "memory", town.clock, journal)
            outbox = Outbox(
                database=database,
                journal=journal,
                clock=town.clock,
                senders=dict.fromkeys(KINDS, BlueskySender(atproto, pictures)),
                pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
                own_did=lambda: atproto.did,
            )
            yield OutboxInTown(town, database, console, outbox)
            await database.close()


@pytest.mark.parametrize("stored", UNREADABLE_BODIES)
@pytest.mark.parametrize("kind", KINDS)
async def test_an_act_whose_body_cannot_be_read_is_refused_for_good_and_all_else_leaves(
    outbox_in_town: OutboxInTown, kind: IntentKind, stored: str
) -> None:
    spoilt = await outbox_in_town.submit(kind)
    await outbox_in_town.spoil(spoilt, stored)
    good = (await outbox_in_town.outbox.submit(ProposedAction(PostBody(text="Tin sings.")))).intent
    await outbox_in_town.outbox.deliver_due()
    refused = await outbox_in_town.now(spoilt)
    assert (refused.state, refused.error, refused.attempts) == ("failed", UNREADABLE, 0)
    assert (await outbox_in_town.now(good)).state == "done"
    (line,) = outbox_in_town.errors()
    assert line.startswith(f"Failed: {kind}")
    assert line.endswith(UNREADABLE)
    report = await outbox_in_town.outbox.deliver_due()
    assert (report.failed, report.next_in_s) == (0, None)
    assert len(outbox_in_town.errors()) == 1


@pytest.mark.parametrize("stored", UNREADABLE_BODIES)
async def test_what_was_on_its_way_is_looked_for_before_it_is_refused(
    outbox_in_town: OutboxInTown, stored: str
) -> None:
    spoilt = await outbox_in_town.submit("post")
    await outbox_in_town.spoil(spoilt, stored, "sending")
    await outbox_in_town.outbox.deliver_due()
    assert (await outbox_in_town.now(spoilt)).state == "failed"
    assert [one.id for one in await outbox_in_town.outbox.recent(9)] == [spoilt.id]
