"""Records in the relationships what the SOUL answered, as the outbox has it: however an act was admitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from common.clock import Clock
from modules.services.outbox.bodies import DirectMessageBody, IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ACTIVE_STATES, Intent
from modules.services.peers.relationships import RELATIONSHIP_PRUNE_DAYS, Relationships
from modules.services.work.types import Perceiver

_KINDS: tuple[IntentKind, ...] = ("reply", "like", "direct_message")
_OPEN_FOR = timedelta(days=2)
"""An act that was accepted longer ago has left, was refused, or no longer matters."""


@dataclass(kw_only=True)
class ResponsePerceiver(Perceiver):
    """Counts replies, likes and direct messages that left or are on their way; a draft once it is approved."""

    outbox: Outbox
    relationships: Relationships
    clock: Clock
    _looked_at: datetime | None = field(default=None, init=False)

    async def perceive(self) -> None:
        now = self.clock.now()
        since = self._looked_at - _OPEN_FOR if self._looked_at else now - timedelta(days=RELATIONSHIP_PRUNE_DAYS)
        acts = await self.outbox.since(_KINDS, since)
        answered = {_answered(one) for one in acts if one.state in ACTIVE_STATES and one.state != "held"}
        self.relationships.mark_responded(answered)
        self._looked_at = now


def _answered(act: Intent) -> str:
    """Return the address of the post or message that an act answers."""
    if isinstance(act.body, DirectMessageBody):
        return act.body.subject.partition("#")[0]
    return act.target
