"""How far generated tests look.

The same examples in every run, a third of the usual number; where the environment variable `EXPLORE` is n, new
ones, n times as many as usual.
"""

from __future__ import annotations

import os

EXPLORE = int(os.environ.get("EXPLORE", "0"))


def examples(usual: int) -> int:
    """Return how many examples a generated test tries, given how many are usual."""
    return usual * EXPLORE or max(1, usual // 3)
