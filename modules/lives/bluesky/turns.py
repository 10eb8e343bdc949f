"""How many turns each person got of late, so that one who writes all day leaves room for the others.

Each turn is in the journal before it begins, and what the journal knows is read again at the start: neither a restart
nor kill -9 gives anybody new turns.
"""

from __future__ import annotations

from collections import defaultdict, deque
from datetime import timedelta

from adapters.atproto.types import Actor
from common.clock import Clock, parse_iso
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.services.outbox.rules.types import EtiquetteRule

_ACT = "turn"


class PersonTurns:
    """Counts turns by did, for `loop`. At `speed` 10 the window of `manner` is a tenth as long."""

    def __init__(self, manner: EtiquetteRule, clock: Clock, speed: float, *, journal: Journal, loop: str) -> None:
        self._limit = int(manner.limit)
        self._window_s = (manner.window_s or 0.0) / speed
        self._clock = clock
        self._journal = journal
        self._loop = loop
        self._begun: defaultdict[str, deque[float]] = defaultdict(deque)
        self._is_recalled = False

    async def recall(self) -> None:
        """Count what the journal tells of the time before this start; does nothing when called again."""
        if self._is_recalled:
            return
        now, window = self._clock.now(), timedelta(seconds=self._window_s)
        for stored in await self._journal.with_act(self._loop, _ACT, now - window, now + window):
            # NOTE(self): what is told of the future was written before the clock was set back, so it is recent.
            age_s = max(0.0, (now - parse_iso(stored.at)).total_seconds())
            self._begun[str(stored.entry.data["did"])].append(self._clock.monotonic() - age_s)
        self._is_recalled = True

    async def begin_turn(self, author: Actor) -> None:
        """Count a turn about a post of `author`, which begins now."""
        begins = f"A turn about a post of @{author.handle} begins"
        await self._journal.record(
            Entry("life", self._loop, begins, line=None, author=author.handle, data={"act": _ACT, "did": author.did})
        )
        self._begun[author.did].append(self._clock.monotonic())

    def counts(self) -> dict[str, int]:
        """The turns within the window, for those who had any."""
        since = self._clock.monotonic() - self._window_s
        for did, begun in list(self._begun.items()):
            while begun and begun[0] <= since:
                begun.popleft()
            if not begun:
                del self._begun[did]
        return {did: len(begun) for did, begun in self._begun.items()}

    def wait_s(self, did: str) -> float:
        """Seconds until somebody may have another turn; 0 if now."""
        if self.counts().get(did, 0) < self._limit:
            return 0.0
        return self._begun[did][-self._limit] + self._window_s - self._clock.monotonic()
