"""Asks the network to tell us of new posts of the owner and of the listed peers.

Whoever does not allow it is left alone, and looked at again later: it may allow it by then, or we may follow it.
Nothing is kept here, for the network itself tells what we subscribed to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from adapters.atproto.client import Atproto
from common.clock import Clock
from common.result import Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.presence.policy import may_subscribe

FIRST_LOOK_S = 60.0
LOOK_AGAIN_S = 3600.0

_LOOP = "heartbeat"


class ActivitySubscriptions:
    """Subscribes to `actors` (dids or handles), each once. At `speed` 10 it looks ten times as often."""

    def __init__(
        self, *, atproto: Atproto, journal: Journal, clock: Clock, actors: Sequence[str], speed: float = 1
    ) -> None:
        self._atproto = atproto
        self._journal = journal
        self._clock = clock
        self._open = list(dict.fromkeys(actors))
        self._speed = speed
        self._not_before = clock.monotonic() + FIRST_LOOK_S / speed

    async def ensure(self) -> None:
        """Look, if it is time, at those to whose posts we have not subscribed in this life."""
        now = self._clock.monotonic()
        if not self._open or not self._atproto.did or now < self._not_before:
            return
        self._not_before = now + LOOK_AGAIN_S / self._speed
        self._open = [actor for actor in self._open if await self._subscribed(actor) == "not_yet"]

    async def _subscribed(self, actor: str) -> Literal["stands", "new", "not_yet"]:
        profile = await self._atproto.get_profile(actor)
        if isinstance(profile, Err):
            return "not_yet"
        them = profile.data
        if them.is_subscribed or them.did == self._atproto.did:
            return "stands"
        if not may_subscribe(them):
            return "not_yet"
        put = await self._atproto.subscribe_to_posts(them.did)
        if isinstance(put, Err):
            summary = f"The posts of @{them.handle} could not be subscribed to"
            await self._journal.record(Entry("error", _LOOP, summary, line="warn", reason=put.error))
            return "not_yet"
        summary = f"Is told of new posts of @{them.handle} from now on"
        await self._journal.record(Entry("life", _LOOP, summary, line="info", author=them.handle))
        return "new"
