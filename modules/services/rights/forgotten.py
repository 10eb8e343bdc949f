"""Filters what arrives from forgotten people: their earlier acts are not read again, their new posts to us are.

An answer needs a post, a conversation and an act for a while, so a request is stored that deletes these a day later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from adapters.atproto.types import Notification
from common.clock import Clock, parse_iso
from modules.runtime.database.database import Database
from modules.services.rights import tombstones
from modules.services.rights.requests import ForgetRequest, ForgetRequests, forget_at

_WORDS = frozenset({"mention", "reply", "quote"})


class ForgottenPeople:
    """Filters new notifications by whether their authors are forgotten."""

    def __init__(self, database: Database, requests: ForgetRequests, clock: Clock) -> None:
        self._database = database
        self._requests = requests
        self._clock = clock

    async def sift(self, fresh: Sequence[Notification]) -> tuple[list[Notification], frozenset[str]]:
        """Return the notifications to read, and the DIDs of forgotten authors in them, who must not be remembered."""
        dids = frozenset(item.author.did for item in fresh)
        since = await self._database.run(partial(tombstones.forgotten, dids=dids)) if dids else {}
        kept = [
            item
            for item in fresh
            if (at := since.get(item.author.did)) is None or (item.kind in _WORDS and parse_iso(item.indexed_at) > at)
        ]
        authors = frozenset(item.author.did for item in kept if item.author.did in since)
        for did in authors:
            self.sweep(did)
        return kept, authors

    async def is_forgotten(self, did: str) -> bool:
        """Return whether a person is forgotten."""
        return bool(await self._database.run(partial(tombstones.forgotten, dids=[did])))

    def sweep(self, did: str) -> None:
        """Store a request that deletes, a day later, what a forgotten person says to us now."""
        self._requests.give(ForgetRequest(did, forget_at(self._clock, last=self._clock.now())))
