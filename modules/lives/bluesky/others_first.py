"""How long others who are named in a post go first: a moment each in talk, and with shared work until they answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from cachetools import TTLCache

from adapters.atproto.types import Actor
from common.clock import Clock
from common.pace import Pace
from modules.lives.bluesky.types import LaterTurn, Pending
from modules.runtime.scheduler.policy import get_agent_jitter, get_peer_delay, peers_before
from modules.services.identity.identity import Me
from modules.services.outbox.rules.etiquette import Etiquette

_MOST_SHARED, _SHARED_S = 1_000, 86_400.0
WORK_STEPS = 30
"""So many times as long as in talk each of the others goes first with work that all share: ten minutes."""


@dataclass(frozen=True, slots=True)
class OthersFirst:
    """Reckons the order among those whom a post names; `etiquette` knows which of them are peers."""

    me: Me
    pace: Pace
    clock: Clock
    etiquette: Etiquette
    shared: TTLCache[str, bool] = field(default_factory=lambda: TTLCache(_MOST_SHARED, _SHARED_S))

    def note_shared(self, uri: str) -> None:
        """Note that several do the work of a post: it waits without another turn as long as others are awaited."""
        self.shared[uri] = True

    def is_shared(self, uri: str) -> bool:
        """Return whether that was noted, within a day."""
        return uri in self.shared

    def first_ms(self, item: Pending) -> float:
        """Return how many ms others who are named in a post go first; 0 where nobody else is.

        Peers of ours go in the order that all of them reckon; else our own name decides.
        """
        if not item.names_several:
            return 0.0
        pace, name = self.pace, self.me.bluesky_username
        if peers := self._peers(item):
            root_uri = item.notification.root.uri
            return get_peer_delay(name, peers, root_uri, pace.peer_jitter_min_ms, pace.peer_step_ms)
        return get_agent_jitter(self.me.agent_name, pace.peer_jitter_min_ms, pace.peer_jitter_span_ms)

    def later(self, item: Pending, answered: Collection[str]) -> LaterTurn | None:
        """Return which peers have the work of a post before us and are still awaited; None where none is.

        `answered` are the handles of those who replied, in lower case. Whoever does not is awaited for ten minutes, so
        that nothing waits for a SOUL that is gone.
        """
        before = peers_before(self.me.bluesky_username, self._peers(item), item.notification.root.uri)
        awaited = tuple(f"@{one}" for one in before if one not in answered)
        limit_s = (self.pace.peer_jitter_min_ms + len(awaited) * WORK_STEPS * self.pace.peer_step_ms) / 1000
        left_s = limit_s - (self.clock.now() - item.received).total_seconds()
        if not awaited or left_s <= 0:
            return None
        return LaterTurn(awaited, min(left_s, self.pace.awareness_ms / 1000))

    def _peers(self, item: Pending) -> list[str]:
        others = (handle for handle in item.named if handle.lower() != self.me.bluesky_username.lower())
        return [handle for handle in others if self.etiquette.is_peer(Actor("", handle))]
