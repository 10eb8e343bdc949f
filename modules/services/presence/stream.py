"""Hears sooner than by looking of posts, of deleted ones, and of what people declare: an extra over Jetstream.

A new post of the owner or of a peer only brings the next look forward; a deleted one that waits for an answer is given
up, and a reply to it that has not left is taken back. What somebody declares about the use of their posts is read anew
where it changed. Without the stream the same is found later, when it is looked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from adapters.jetstream.client import Jetstream, RecordChanged
from common.clock import Clock
from common.settings import Settings
from modules.runtime.database.database import Database
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.identity.identity import Me
from modules.services.inbox import received
from modules.services.outbox.account import AccountContext
from modules.services.outbox.outbox import Outbox
from modules.services.peers.registry import PeerRegistry
from modules.services.presence.companions import companions_of
from modules.services.rights.policy import INTENTS, PREFERENCE
from modules.services.rights.preferences import Preferences

LOOK_IN_S = 3.0
"""How long after a post was written the service that lists notifications may still not know of it."""
LOOK_AGAIN_S = 15.0

_POST = "app.bsky.feed.post"
_DECLARED = (PREFERENCE, INTENTS)
_LOOP = "awareness"


class BringsForward(Protocol):
    """What runs the loops."""

    def bring_forward(self, name: str, seconds: float = 0.0) -> None:
        """Let a loop run after `seconds` instead of at its next time."""
        ...


class StreamServices(Protocol):
    """What it is built from."""

    settings: Settings
    me: Me
    clock: Clock
    database: Database
    journal: Journal
    outbox: Outbox
    account: AccountContext
    peer_registry: PeerRegistry
    preferences: Preferences


class StreamWatch:
    """Listens, if `JETSTREAM_URL` is set."""

    def __init__(self, services: StreamServices) -> None:
        self._services = services
        self._companions = companions_of(services)
        settings, clock = services.settings, services.clock
        self._stream = (
            Jetstream(settings.jetstream_url, collections=(_POST, *_DECLARED), accounts=self._watched, clock=clock)
            if settings.jetstream_url
            else None
        )
        self._speed = settings.soul_speed
        self._next_look = clock.monotonic()

    async def keep_listening(self, scheduler: BringsForward) -> None:
        """Listen until cancelled; never ends otherwise."""
        if self._stream is None:
            await asyncio.Event().wait()
        else:
            await self._stream.listen(lambda change: self._note(change, scheduler.bring_forward))

    async def _watched(self) -> list[str]:
        """Those, and then the authors of all posts that wait: however many wait, the owner and peers are heard."""
        rows = await self._services.database.run(received.waiting)
        return [*sorted(self._companions()), *(row.author_did for row in rows)]

    async def _note(self, change: RecordChanged, bring_forward: Callable[[str, float], None]) -> None:
        if change.collection in _DECLARED:
            await self._services.preferences.expire(change.did)
        elif change.operation == "delete":
            await self._give_up(change.uri)
        elif change.operation == "create" and change.did in self._companions():
            now = self._services.clock.monotonic()
            if now >= self._next_look:
                self._next_look = now + LOOK_AGAIN_S / self._speed
                bring_forward(_LOOP, LOOK_IN_S / self._speed)

    async def _give_up(self, uri: str) -> None:
        """Take back what is not said yet to a post that was deleted."""
        services = self._services
        dropped = await services.database.run(lambda connection: received.drop_deleted(connection, uri))
        withdrawn = await services.outbox.withdraw_reply(uri)
        if dropped or withdrawn:
            summary = "A post was deleted before it was answered"
            reason = "the reply that waited was taken back" if withdrawn else "it is not answered"
            await services.journal.record(
                Entry(
                    "decision", _LOOP, summary, line="social", reason=reason, trigger_uri=uri, data={"act": "dropped"}
                )
            )
