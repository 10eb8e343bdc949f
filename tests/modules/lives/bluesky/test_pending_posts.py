"""The rows of waiting posts, as every version writes and reads them."""

from __future__ import annotations

import json
import sqlite3

from tests.modules.lives.bluesky.bluesky_values import notification
from tests.running_town import RunningTown, awake


async def test_a_row_keeps_the_name_that_earlier_versions_gave_to_the_kind(running_town: RunningTown) -> None:
    def payloads(connection: sqlite3.Connection) -> list[str]:
        return [row[0] for row in connection.execute("SELECT payload FROM pending_notifications")]

    told = notification(kind="quote", parent="at://did:plc:me/app.bsky.feed.post/1")
    async with awake(running_town.make_home("rowan")) as life:
        pending = life.app.lives.bluesky.awareness.pending
        await pending.take_in([told])
        (stored,) = await life.app.services.database.run(payloads)
        (waiting,) = await pending.waiting()
    assert json.loads(stored)["reason"] == "quote"
    assert "kind" not in json.loads(stored)
    assert waiting.notification == told
