"""What the life on Bluesky tidies at each heartbeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock
from common.constants import CONVERSATION_STALE_RETENTION_MS
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.state import PendingPosts
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.identity.identity import Identity
from modules.services.peers.accounts import Relationships


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
            summary = f"The talk with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await self.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        self.relationships.prune_stale()
        await self.pending.forget_before(self.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))
