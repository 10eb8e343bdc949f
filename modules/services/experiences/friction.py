"""What goes wrong again and again, counted from the journal: how often within a week, by what it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from common.clock import Clock
from modules.runtime.journal.journal import Journal

FrictionCategory = Literal["pacing", "expression", "memory", "social", "tools", "understanding", "other"]

COUNTED = timedelta(days=7)

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

    @property
    def what(self) -> str:
        """How it is told."""
        return f"{self.category} ({self.loop})"


@dataclass(frozen=True, slots=True)
class FrictionReport:
    """Counts it."""

    journal: Journal
    clock: Clock

    async def counts(self) -> list[Friction]:
        """Return what there was, the most frequent first."""
        found: Counter[tuple[FrictionCategory, str]] = Counter()
        for kind, loop, act, count in await self.journal.counts(self.clock.now() - COUNTED):
            if kind == "error":
                found[_BY_LOOP.get(loop, "other"), loop] += count
            elif act in _ACTS:
                found[_ACTS[act], loop] += count
            elif (loop, act) == ("expression", "skipped"):
                found["expression", loop] += count
        return [Friction(category, loop, count) for (category, loop), count in found.most_common()]
