"""Generated histories of a memory: what was saved, said again, replaced, retired and recalled, and when.

The words are few, so that the rules of saving meet in every way; some steps happen at the same moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from modules.services.memory.admission import Kind, NewMemory
from modules.services.memory.policy import TRUSTS

START = datetime(2026, 1, 5, 12, tzinfo=UTC)

What = Literal["save", "retire", "recall"]
_WHAT: tuple[What, ...] = get_args(What)

_KINDS: tuple[Kind, ...] = ("fact", "person", "curated", "episode", "daily")
_SUBJECTS = ("Tides", "tides", "Kit", "", "", "潮")
_BODIES = ("High.", "high.", "Low.", "Tides and Kit.", "x\ny", "kit\u2028", "潮が高い。", "e\u0301t\u00e9")
_SOURCES = ("self", "owner:x", "space:y", "file:MEMORY.md")
_TAGS = ("sea", "Sea", "moon")
_STEPS_MAX = 14


@dataclass(frozen=True, slots=True)
class Step:
    """One step; unless it saves a new memory, `number` selects one of those saved so far."""

    what: What
    at: datetime
    new: NewMemory
    number: int


def history(rng: random.Random) -> list[Step]:
    """Return a history of up to 14 steps."""
    steps: list[Step] = []
    now = START
    for _ in range(rng.randint(1, _STEPS_MAX)):
        now += timedelta(seconds=rng.choice((0, 0, 1, 60)))
        new = NewMemory(
            rng.choice(_KINDS),
            rng.choice(_SUBJECTS),
            rng.choice(_BODIES),
            tuple(rng.sample(_TAGS, rng.randint(0, 2))),
            rng.randint(1, 5),
            rng.choice(_SOURCES),
            rng.choice(TRUSTS),
            shareable=rng.random() < 0.3,
        )
        what = rng.choices(_WHAT, (8, 1, 1))[0]
        steps.append(Step(what, now, new, rng.randrange(_STEPS_MAX)))
    return steps
