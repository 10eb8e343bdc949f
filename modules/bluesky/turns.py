"""How many turns each person got of late, so that one who writes all day leaves room for the others. In memory only."""

from __future__ import annotations

from collections import defaultdict, deque

from common.clock import Clock
from modules.etiquette.types import Manner


class PersonTurns:
    """Counts turns by did. At `speed` 10 the window of `manner` is a tenth as long."""

    def __init__(self, manner: Manner, clock: Clock, speed: float) -> None:
        self._limit = int(manner.limit)
        self._window_s = (manner.window_s or 0.0) / speed
        self._clock = clock
        self._begun: defaultdict[str, deque[float]] = defaultdict(deque)

    def note(self, did: str) -> None:
        """A turn about somebody's post begins."""
        self._begun[did].append(self._clock.monotonic())

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
