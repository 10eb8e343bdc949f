"""The posts that wait to be met, in `soul.db`: a post is here before it is marked as seen, and leaves only when met.

Survives kill -9: taking in is idempotent by uri, and a post stays pending until its outcome is written.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from adapters.atproto.types import Actor, Notification, Picture, ReplyRefs, StrongRef
from common.clock import Clock, iso
from modules.lives.bluesky.types import Pending
from modules.runtime.database.database import Database


class PendingPosts:
    """The durable queue of notifications that deserve a look by the mind."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def known(self, uris: Sequence[str]) -> set[str]:
        """Which of these were ever taken in, whatever became of them."""

        def select(connection: sqlite3.Connection) -> set[str]:
            query = "SELECT uri FROM pending_notifications WHERE uri IN (SELECT value FROM json_each(?))"
            return {str(row[0]) for row in connection.execute(query, (json.dumps(list(uris)),))}

        return await self._database.run(select)

    async def take_in(
        self, notifications: Sequence[Notification], state: Literal["pending", "dropped"] = "pending"
    ) -> int:
        """Store those that are new; returns how many were. `dropped` ones are only remembered."""
        now = iso(self._clock.now())
        rows = [
            (
                item.uri,
                item.root.uri,
                item.author.did,
                json.dumps(_payload(item)),
                item.indexed_at,
                now,
                state,
            )
            for item in notifications
        ]

        def insert(connection: sqlite3.Connection) -> int:
            before = connection.total_changes
            connection.executemany(
                "INSERT OR IGNORE INTO pending_notifications"
                " (uri, root_uri, author_did, payload, indexed_at, received_at, attempts, state)"
                " VALUES (?, ?, ?, ?, ?, ?, 0, ?)",
                rows,
            )
            return connection.total_changes - before

        return await self._database.run(insert) if rows else 0

    async def waiting(self) -> list[Pending]:
        """All that still wait, oldest first."""

        def select(connection: sqlite3.Connection) -> list[Pending]:
            cursor = connection.execute(
                "SELECT payload, received_at, attempts FROM pending_notifications"
                " WHERE state = 'pending' ORDER BY indexed_at"
            )
            return [Pending(_notification(json.loads(row[0])), row[1], row[2]) for row in cursor]

        return await self._database.run(select)

    async def count(self) -> int:
        """How many wait."""

        def select(connection: sqlite3.Connection) -> int:
            query = "SELECT count(*) FROM pending_notifications WHERE state = 'pending'"
            return int(connection.execute(query).fetchone()[0])

        return await self._database.run(select)

    async def settle(self, uris: Sequence[str], state: Literal["handled", "dropped"], outcome: str) -> None:
        """These are met, or given up; `outcome` says how."""

        def update(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "UPDATE pending_notifications SET state = ?, outcome = ? WHERE uri = ?",
                [(state, outcome, uri) for uri in uris],
            )

        await self._database.run(update)

    async def failed_once(self, uri: str) -> int:
        """A try ended in an error of ours; returns how many did so far."""

        def update(connection: sqlite3.Connection) -> int:
            connection.execute("UPDATE pending_notifications SET attempts = attempts + 1 WHERE uri = ?", (uri,))
            query = "SELECT attempts FROM pending_notifications WHERE uri = ?"
            return int(connection.execute(query, (uri,)).fetchone()[0])

        return await self._database.run(update)

    async def forget_before(self, moment: datetime) -> int:
        """Delete what was met before `moment`; returns how many rows went."""

        def delete(connection: sqlite3.Connection) -> int:
            return connection.execute(
                "DELETE FROM pending_notifications WHERE state != 'pending' AND received_at < ?", (iso(moment),)
            ).rowcount

        return await self._database.run(delete)


def _payload(notification: Notification) -> dict[str, Any]:
    """The stored form. The key `reason` is older than the field `kind`, and rows of earlier versions have it."""
    data = dataclasses.asdict(notification)
    return {**data, "reason": data.pop("kind")}


def _notification(data: dict[str, Any]) -> Notification:
    kind = data.pop("reason")
    reply = data.pop("reply")
    refs = ReplyRefs(StrongRef(**reply["parent"]), StrongRef(**reply["root"])) if reply else None
    pictures = tuple(Picture(**picture) for picture in data.get("pictures", ()))
    return Notification(
        **{
            **data,
            "kind": kind,
            "author": Actor(**data["author"]),
            "reply": refs,
            "links": tuple(data["links"]),
            "pictures": pictures,
        },
    )
