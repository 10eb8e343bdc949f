"""How often the watcher looks. Pure."""

from __future__ import annotations

from datetime import timedelta

LOOKS_PER_S = 4
"""A look takes two requests to a service that allows one address ten a second."""
KEPT_FOR = timedelta(hours=26)
"""Who has slept for so long is woken, whatever else was said."""


def step_s(sleepers: int, every_s: float) -> float:
    """Return how many seconds lie between two looks for one of so many, that asked for one `every_s`."""
    return max(every_s, sleepers / LOOKS_PER_S)
