"""The posts that wait to be handled, in `soul.db`: stored before they are marked as seen, and kept until handled.

Survives kill -9: taking in is idempotent by uri, and a post stays pending until its outcome is written. What has
outlived its use, here and in the other files of this life, is forgotten by `Tidying`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from adapters.atproto.types import Notification
from common.clock import Clock, iso
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.types import CONVERSATION_STALE_RETENTION_MS, Pending
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.identity.identity import Identity
from modules.services.inbox import received
from modules.services.inbox.received import ReceivedPost
from modules.services.peers.accounts import Relationships
from modules.services.work.types import WorkItem


class PendingPosts:
    """The durable queue of notifications that deserve a look by the model."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def known(self, uris: Sequence[str]) -> set[str]:
        """Which of these were ever taken in, whatever became of them."""
        return {one.uri for one in await self._database.run(lambda connection: received.among(connection, uris))}

    async def take_in(
        self, notifications: Sequence[Notification], state: Literal["pending", "dropped"] = "pending"
    ) -> int:
        """Store those that are new; returns how many were. `dropped` ones are only remembered."""
        now = iso(self._clock.now())
        posts = [
            ReceivedPost(item.uri, item.root.uri, item.author.did, _payload(item), item.indexed_at, now, state)
            for item in notifications
        ]
        return await self._database.run(lambda connection: received.insert(connection, posts)) if posts else 0

    async def waiting(self) -> list[Pending]:
        """All that still wait and can be read, oldest first."""
        rows = await self._database.run(received.waiting)
        read = ((row, _notification(row.payload)) for row in rows)
        return [Pending(post, row.received_at) for row, post in read if post is not None]

    async def read(self, item: WorkItem) -> Pending | None:
        """Return the post that a row of work is about, with those settled with it; None where it cannot be read."""
        uris = [item.key, *item.payload.get("earlier", ())]
        rows = await self._database.run(lambda connection: received.among(connection, uris))
        posts = {row.uri: post for row in rows if (post := _notification(row.payload))}
        if (post := posts.pop(item.key, None)) is None:
            return None
        row = next(row for row in rows if row.uri == item.key)
        return Pending(post, row.received_at, tuple(posts.values()), waits=row.state == "pending")

    async def unreadable(self) -> list[str]:
        """The uris of those that wait and cannot be read, oldest first."""
        rows = await self._database.run(received.waiting)
        return [row.uri for row in rows if _notification(row.payload) is None]

    async def settle(self, uris: Sequence[str], state: Literal["handled", "dropped"], outcome: str) -> None:
        """These are handled, or given up; `outcome` says how."""
        await self._database.run(lambda connection: received.settle(connection, uris, state, outcome))

    async def forget_before(self, moment: datetime) -> int:
        """Delete what was handled before `moment`; returns how many rows went."""
        return await self._database.run(lambda connection: received.forget_before(connection, moment))


@dataclass(frozen=True, slots=True)
class Tidying:
    """Ends the conversations that are over, and forgets what has outlived its use."""

    conversations: Conversations
    relationships: Relationships
    pending: PendingPosts
    identity: Identity
    journal: Journal
    clock: Clock
    own_did: Callable[[], str]

    async def run(self) -> None:
        """Do it once. Raises `StorageError`, or `Transient` where the database is briefly out of reach."""
        for over in self.conversations.sweep(self.own_did(), self.identity.extract().social_mechanics):
            summary = f"The conversation with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await self.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        self.relationships.prune_stale()
        await self.pending.forget_before(self.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))


def _payload(notification: Notification) -> dict[str, Any]:
    """The stored form. The key `reason` is older than the field `kind`, and rows of earlier versions have it."""
    data = dataclasses.asdict(notification)
    data["reason"] = data.pop("kind")
    return data


def _notification(stored: dict[str, Any]) -> Notification | None:
    """The notification in its stored form; None if a part of it is missing or of another shape."""
    try:
        return _notifications().validate_python({**stored, "kind": stored.get("reason")})
    except ValidationError:
        return None


@cache
def _notifications() -> TypeAdapter[Notification]:
    # NOTE(self): it takes time to build, which a start does not wait for.
    return TypeAdapter(Notification)
