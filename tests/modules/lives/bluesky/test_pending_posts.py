"""The rows of waiting posts, as every version writes and reads them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.database.schema_steps import POSTS_AS_WORK
from tests.modules.lives.bluesky.bluesky_values import notification
from tests.running_town import RunningTown, awake


async def test_a_row_keeps_the_name_that_earlier_versions_gave_to_the_kind(running_town: RunningTown) -> None:
    def payloads(connection: sqlite3.Connection) -> list[str]:
        return [row[0] for row in connection.execute("SELECT payload FROM pending_notifications")]

    told = notification(kind="quote", parent="at://did:plc:me/app.bsky.feed.post/1")
    async with awake(running_town.make_home("rowan")) as life:
        pending = life.app.lives.bluesky_state.pending
        await pending.take_in([told])
        (stored,) = await life.app.services.database.run(payloads)
        (waiting,) = await pending.waiting()
    assert json.loads(stored)["reason"] == "quote"
    assert "kind" not in json.loads(stored)
    assert waiting.notification == told


async def test_a_post_that_waited_in_a_home_of_an_earlier_version_is_answered_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    async with awake(home) as life:
        await life.app.lives.bluesky.perceiver.read_first()
    with closing(sqlite3.connect(home.memory / "soul.db")) as earlier:
        earlier.execute("ALTER TABLE pending_notifications ADD COLUMN attempts INTEGER NOT NULL DEFAULT 2")
        earlier.executescript("DELETE FROM work; DROP INDEX work_of_late")
        for column in ("pages", "pushed_at"):
            earlier.execute(f"ALTER TABLE repository_verdicts DROP COLUMN {column}")
        earlier.execute(f"PRAGMA user_version = {MIGRATIONS.index(POSTS_AS_WORK)}")
        earlier.commit()
    for _ in range(2):
        async with awake(home) as life:
            await life.look()
            assert await life.app.lives.bluesky_state.pending.count() == 0
    assert len(running_town.texts("rowan")) == 1
