"""Subscribes to new posts of the owner and of peers, and unsubscribes from peers with whom we parted."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.atproto.client import Atproto
from adapters.atproto.types import Profile
from common.clock import Clock
from common.result import ApiResult, Err
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.account import AccountContext
from modules.services.peers.registry import PeerRegistry
from modules.services.presence.policy import may_subscribe

FIRST_LOOK_S = 60.0
LOOK_AGAIN_S = 3600.0
_LOOP = "heartbeat"


@dataclass(slots=True)
class ActivitySubscriptions:
    """Subscribes to each account once, and unsubscribes once."""

    atproto: Atproto
    account: AccountContext
    registry: PeerRegistry
    journal: Journal
    clock: Clock
    owner_did: str
    _standing: frozenset[str] = field(default=frozenset(), init=False)
    _ended: frozenset[str] = field(default=frozenset(), init=False)
    _not_before: float = field(init=False)

    def __post_init__(self) -> None:
        self._not_before = self.clock.monotonic() + self.clock.real(FIRST_LOOK_S)

    def companions(self) -> frozenset[str]:
        """Return the DIDs whose posts may concern us: the owner, and the peers with whom we did not part."""
        peers = (self.account.peers() | self.registry.found()) - self.registry.parted()
        return frozenset(name for name in (self.owner_did, *peers) if name.startswith("did:"))

    async def ensure(self) -> None:
        """If it is time, settle the subscriptions that are not known to be right in this life."""
        now = self.clock.monotonic()
        if not self.atproto.did or now < self._not_before:
            return
        self._not_before = now + self.clock.real(LOOK_AGAIN_S)
        wanted, parted = self.companions(), self.registry.parted() - {self.atproto.did}
        unwanted = parted - wanted
        self._standing, self._ended = self._standing & wanted, self._ended & unwanted
        for did in sorted(wanted - self._standing):
            if await self._settle(did, wanted=True):
                self._standing |= {did}
        for did in sorted(unwanted - self._ended):
            if await self._settle(did, wanted=False):
                self._ended |= {did}

    async def _settle(self, did: str, *, wanted: bool) -> bool:
        """Do what can be done for a subscription; return whether it is as wanted."""
        if (them := (await self.atproto.get_profile(did)).or_else(None)) is None:
            return False
        if them.is_subscribed == wanted or them.did == self.atproto.did:
            return True
        if wanted and not may_subscribe(them):
            return False
        put = await (self.atproto.subscribe_to_posts if wanted else self.atproto.unsubscribe_from_posts)(them.did)
        await self.journal.record(_told(them, put, wanted=wanted))
        return put.success


def _told(them: Profile, put: ApiResult[None], *, wanted: bool) -> Entry:
    if isinstance(put, Err):
        failed = "could not be subscribed to" if wanted else "are still subscribed to"
        return Entry(
            "error", _LOOP, f"The posts of @{them.handle} {failed}", line="warn", reason=put.error, dids=(them.did,)
        )
    if wanted:
        summary = f"Is told of new posts of @{them.handle} from now on"
        return Entry("life", _LOOP, summary, line="info", author=them.handle, dids=(them.did,))
    summary = f"Is no longer told of new posts of @{them.handle}"
    return Entry("life", _LOOP, summary, line="info", reason="they parted", author=them.handle, dids=(them.did,))
