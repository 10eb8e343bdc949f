"""What the town's GitHub looked like a moment ago, for reads that are behind the writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timedelta

from town.github.network import GitHubNetwork

_KEPT = timedelta(seconds=60)


class Replicas:
    """Past states of `network`, each up to the write that ended it. Nothing is kept unless it is asked for."""

    def __init__(self, network: GitHubNetwork) -> None:
        self._network = network
        self._past: deque[tuple[datetime, GitHubNetwork]] = deque()

    async def keep(self) -> None:
        """Keeps the present state; call it before each write."""
        now = self._network.clock.now()
        while self._past and self._past[0][0] <= now - _KEPT:
            self._past.popleft()
        if not self._past or self._past[-1][0] < now:
            self._past.append((now, self._copy(await self._network.all_refs())))

    def _copy(self, refs: Mapping[int, Mapping[str, str]]) -> GitHubNetwork:
        network = self._network
        # NOTE(self): accounts never change, so the copy shares them.
        state = deepcopy(network.state, {id(account): account for account in network.state.accounts.values()})
        return GitHubNetwork(clock=network.clock, git_folder=network.git_folder, state=state, pinned=refs)

    def behind(self, seconds: float) -> GitHubNetwork:
        """The network as it was so many seconds ago, as far as that was kept; the present one for 0."""
        at = self._network.clock.now() - timedelta(seconds=seconds)
        return next((past for until, past in self._past if until > at), self._network)
