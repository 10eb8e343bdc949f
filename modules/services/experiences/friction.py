"""What goes wrong again and again, counted from the journal: how often within a week, by what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from common.clock import Clock
from modules.runtime.journal.rows import Journal

FrictionCategory = Literal["pacing", "expression", "memory", "social", "tools", "understanding", "other"]

COUNTED = timedelta(days=7)
_HOLDS_S = 60.0
"""So long a count holds: the status asks for it every second, and it reads a week of the journal."""

_BY_LOOP: Mapping[str, FrictionCategory] = {
    "awareness": "social",
    "message-others": "social",
    "messages": "social",
    "message-talk": "social",
    "space-participation": "social",
    "expression": "expression",
    "expression-check": "expression",
    "owner": "understanding",
    "work": "understanding",
    "github-awareness": "tools",
    "commitment-fulfillment": "tools",
    "prompt": "memory",
    "sessions": "memory",
    "scheduler": "pacing",
}
_ACTS: Mapping[str, FrictionCategory] = {
    "asked_for_better": "expression",
    "undecided": "social",
    "dropped": "social",
}
"""Decisions that are friction, by the `act` of their entries; so is each post that did not come to be."""


@dataclass(frozen=True, slots=True)
class Friction:
    """A kind of trouble of one loop, and how often it came within a week."""

    category: FrictionCategory
    loop: str
    count: int


@dataclass(slots=True)
class FrictionReport:
    """Counts it, at most once a minute."""

    journal: Journal
    clock: Clock
    _counted_at: float = field(default=float("-inf"), init=False)
    _counted: list[Friction] = field(default_factory=list, init=False)

    async def counts(self) -> list[Friction]:
        """Return what there was, the most frequent first."""
        now_s = self.clock.monotonic()
        if now_s - self._counted_at >= _HOLDS_S:
            self._counted, self._counted_at = await self._count(), now_s
        return list(self._counted)

    async def _count(self) -> list[Friction]:
        found: Counter[tuple[FrictionCategory, str]] = Counter()
        for kind, loop, act, count in await self.journal.counts(self.clock.now() - COUNTED):
            if kind == "error":
                found[_BY_LOOP.get(loop, "other"), loop] += count
            elif act in _ACTS:
                found[_ACTS[act], loop] += count
            elif (loop, act) == ("expression", "skipped"):
                found["expression", loop] += count
        return [Friction(category, loop, count) for (category, loop), count in found.most_common()]
