"""What manners must know of our account and its peers, as the network tells it. Lives in memory; each start asks anew.

Until it is told, the account counts as young, and a peer is known by handle only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from adapters.atproto.client import Atproto
from common.clock import parse_iso_or_none
from common.result import Err
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry


class AccountContext:
    """When our account was made, and who the listed peers are. Its answers may be asked for from any thread."""

    def __init__(self, *, atproto: Atproto, journal: Journal, peers: Sequence[str]) -> None:
        self._atproto = atproto
        self._journal = journal
        self._handles = tuple(peers)
        self._peers = frozenset(peers)
        self._born_at: datetime | None = None

    def peers(self) -> frozenset[str]:
        """Dids and handles of the listed peers."""
        return self._peers

    def born_at(self) -> datetime | None:
        """When our account was made; None if nobody knows."""
        return self._born_at

    async def learn(self) -> None:
        """Ask the network. What cannot be learnt now is told as a warning, and what was known stays."""
        profile = await self._atproto.get_profile(self._atproto.did)
        if isinstance(profile, Err):
            await self._warn(f"The age of the account could not be read: {profile.error}")
        elif profile.data.created_at:
            self._born_at = parse_iso_or_none(profile.data.created_at)
        dids: set[str] = set()
        for handle in self._handles:
            resolved = await self._atproto.resolve_handle(handle)
            if isinstance(resolved, Err):
                await self._warn(f"The peer @{handle} could not be found: {resolved.error}")
            else:
                dids.add(resolved.data)
        self._peers |= dids

    async def _warn(self, summary: str) -> None:
        await self._journal.record(Entry("life", "start", summary, line="warn"))
