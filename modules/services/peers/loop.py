"""When SOULs are looked for; and what is known of them as a life begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common.clock import Clock
from common.errors import BudgetExceeded, Transient
from common.pace import Pace
from common.settings import Settings
from modules.runtime.control import Standing
from modules.runtime.scheduler.types import Loop, Outcome
from modules.services.peers.discovery import Ourselves
from modules.services.peers.histories import HISTORIES_FILE, PeerHistories
from modules.services.peers.introductions import Introductions
from modules.services.peers.own_identity import LOOP, OwnIdentity
from modules.services.peers.registry import REGISTRY_FILE, PeerRegistry
from modules.services.peers.scanner import PeerScanner
from modules.services.peers.types import Sighting
from modules.services.pinned_names.store import PinnedNames

_LISTED = "SOUL_PEERS"


@dataclass(slots=True)
class PeerLoop(Loop):
    """Says who we are, looks for identity posts, follows and announces. Runs in every mode.

    Nothing happens before `ready`, and nothing is said or done in public while `standing` forbids it. `listed` are the
    handles of the peers in the owner's settings.
    """

    name = LOOP
    at_start = True

    own: OwnIdentity
    registry: PeerRegistry
    scanner: PeerScanner
    introductions: Introductions
    pace: Pace
    listed: tuple[str, ...]
    standing: Callable[[], Standing]
    ready: Callable[[], bool]

    @property
    def interval_ms(self) -> float:
        return self.pace.peers_ms

    async def run(self) -> Outcome:
        if not self.ready():
            wait_s = self.pace.atproto_spacing_ms / 1000
            return Outcome(ran=False, reason="its own feed is still to be read", next_in_s=wait_s)
        self.registry.ensure_peer_registry_clean()
        listed, self.listed = self.listed, ()
        self.registry.register_peer_by_bluesky_handle(Sighting(one, "owner_mention", _LISTED) for one in listed)
        linked = await self.scanner.scan_due()
        may_act = self.standing().may_act
        try:
            own = await self.own.ensure(may_speak=may_act)
            may_meet = may_act and self.registry.is_mutual
            followed = may_meet and await self.introductions.follow_next()
            announced = may_meet and await self.introductions.announce_next()
        except (BudgetExceeded, Transient) as error:
            return Outcome(ran=True, reason=f"{linked} linked; no words for now: {error}")
        did = ", ".join(word for word, done in (("followed one", followed), ("announced one", announced)) if done)
        known = self.registry.get_peer_announcement_summary()
        peers = f"{known.linked} peers, {known.candidates} candidates, {linked} newly linked"
        return Outcome(ran=True, reason=f"{peers}; {own}{'; ' + did if did else ''}")


def ourselves_of(settings: Settings) -> Ourselves:
    """Return who is never a peer."""
    return Ourselves(
        handle=settings.agent_bluesky_username,
        owner_handle=settings.owner_bluesky_social_handle,
        owner_did=settings.owner_bluesky_social_handle_did,
        github=(settings.agent_github_username, settings.owner_github_username),
    )


def open_peers(
    memory: Path, settings: Settings, clock: Clock, names: PinnedNames
) -> tuple[PeerRegistry, PeerHistories]:
    """Return the registry of the home whose `.memory` folder is given, and what was done with peers.

    A peer that the owner listed is the account for which its handle stands in `names`.
    """
    registry = PeerRegistry(
        memory / REGISTRY_FILE,
        clock,
        listed=lambda: [did for one in settings.soul_peers if (did := names.get("bluesky", one))],
        reserved=ourselves_of(settings).github,
        unfollow_cooldown_days=settings.peer_unfollow_cooldown,
    )
    return registry, PeerHistories(memory / HISTORIES_FILE, clock)
