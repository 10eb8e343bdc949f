"""What the owner reads for the key of a conversation."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from soul.commands.talks import talk_name

ROOT = "at://did:plc:ada/app.bsky.feed.post/3kroot"


async def notified(path: Path, *handles: str) -> None:
    """A database that was told of a post by each of these in the thread of `ROOT`."""
    database = await Database.open(path, MIGRATIONS)

    def put(connection: sqlite3.Connection) -> None:
        for place, handle in enumerate(handles):
            payload, at = json.dumps({"author": {"handle": handle}}), f"2026-01-05T12:00:0{place}.000Z"
            connection.execute(
                "INSERT INTO pending_notifications (uri, root_uri, author_did, payload, indexed_at, received_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (f"{ROOT}{place}", ROOT, f"did:plc:{place}", payload, at, at),
            )

    await database.run(put)
    await database.close()


@pytest.mark.parametrize(
    ("handles", "key", "said"),
    [
        ((), "owner:terminal", "you, in the terminal"),
        ((), f"bluesky:thread:{ROOT}", "a thread on Bluesky, https://bsky.app/profile/did:plc:ada/post/3kroot"),
        ((), "bluesky:thread:odd", "a thread on Bluesky, odd"),
        (("kit.test", "bea.test"), f"bluesky:thread:{ROOT}", "a thread on Bluesky with @kit.test, @bea.test"),
        (("a", "b", "c", "d"), f"bluesky:thread:{ROOT}", "a thread on Bluesky with @a, @b, @c and others"),
        ((), "expression", "own posts"),
        ((), "commitments", "fulfilling commitments"),
        ((), "something-new", "something-new"),
    ],
)
async def test_it_is_told_by_who_takes_part(tmp_path: Path, handles: tuple[str, ...], key: str, said: str) -> None:
    await notified(tmp_path / "soul.db", *handles)
    with closing(sqlite3.connect(tmp_path / "soul.db")) as connection:
        connection.row_factory = sqlite3.Row
        assert talk_name(connection, key) == said
