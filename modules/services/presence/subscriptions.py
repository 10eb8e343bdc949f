"""Asks the network to tell us of new posts of the owner and of the peers, and of no peer's with whom we parted.

Whoever does not allow it is left alone, and looked at again later: it may allow it by then, or we may follow it.
Nothing is kept here, for the network itself tells what we subscribed to.
"""

from __future__ import annotations

from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.atproto.types import Profile
from common.clock import Clock
from common.result import ApiResult, Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.presence.companions import CompanionServices, companions_of
from modules.services.presence.policy import may_subscribe

FIRST_LOOK_S = 60.0
LOOK_AGAIN_S = 3600.0

_LOOP = "heartbeat"


class SubscriptionServices(CompanionServices, Protocol):
    """What it is built from."""

    clock: Clock
    journal: Journal
    atproto: Atproto


class ActivitySubscriptions:
    """Subscribes to each once, and takes it back once."""

    def __init__(self, services: SubscriptionServices) -> None:
        self._atproto = services.atproto
        self._journal = services.journal
        self._clock = services.clock
        self._companions = companions_of(services)
        self._registry = services.peer_registry
        self._standing: frozenset[str] = frozenset()
        self._ended: frozenset[str] = frozenset()
        self._not_before = services.clock.monotonic() + services.clock.real(FIRST_LOOK_S)

    async def ensure(self) -> None:
        """Look, if it is time, at those of whom it is not known in this life that it is as it should be."""
        now = self._clock.monotonic()
        if not self._atproto.did or now < self._not_before:
            return
        self._not_before = now + self._clock.real(LOOK_AGAIN_S)
        wanted, parted = self._companions(), self._registry.parted() - {self._atproto.did}
        unwanted = parted - wanted
        self._standing, self._ended = self._standing & wanted, self._ended & unwanted
        for did in sorted(wanted - self._standing):
            if await self._settle(did, wanted=True):
                self._standing |= {did}
        for did in sorted(unwanted - self._ended):
            if await self._settle(did, wanted=False):
                self._ended |= {did}

    async def _settle(self, did: str, *, wanted: bool) -> bool:
        """Do what can be done for a subscription; return whether it stands as it is wanted."""
        profile = await self._atproto.get_profile(did)
        if isinstance(profile, Err):
            return False
        them = profile.data
        if them.is_subscribed == wanted or them.did == self._atproto.did:
            return True
        if wanted and not may_subscribe(them):
            return False
        put = await (self._atproto.subscribe_to_posts if wanted else self._atproto.unsubscribe_from_posts)(them.did)
        await self._journal.record(_told(them, put, wanted=wanted))
        return not isinstance(put, Err)


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
