"""How often the watcher looks. Pure."""

from __future__ import annotations

from datetime import timedelta

LEAST_STEP_S = 45.0
"""As often as a SOUL that is awake looks at its notifications."""
_LOOKS_PER_S = 4.0
"""A look takes two requests to a service that allows one address ten a second."""
KEPT_FOR = timedelta(hours=26)
"""Who has slept for so long is woken, whatever else was said."""


def step_s(sleepers: int) -> float:
    """Return how many seconds lie between two looks for one of so many."""
    return max(LEAST_STEP_S, sleepers / _LOOKS_PER_S)
