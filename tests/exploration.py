"""The number of examples that generated tests try.

Each run tries the same examples, a third of the usual number; if the environment variable `EXPLORE` is n, it tries
new ones, n times the usual number.
"""

import os

EXPLORE = int(os.environ.get("EXPLORE", "0"))


def examples(usual: int) -> int:
    """Return how many examples a generated test tries, given how many are usual."""
    return usual * EXPLORE or max(1, usual // 3)
