"""How far generated tests look.

The same examples in every run; where the environment variable `EXPLORE` is n, new ones, n times as many.
"""

from __future__ import annotations

import os

EXPLORE = int(os.environ.get("EXPLORE", "0"))


def examples(usual: int) -> int:
    """Return how many examples a generated test tries, given how many it usually does."""
    return usual * max(1, EXPLORE)
