"""The kinds of line that the owner is shown."""

from __future__ import annotations

from typing import Literal

LineKind = Literal[
    "info", "done", "warn", "error", "act", "think", "mem", "sys", "refl", "mind", "queue", "social", "said"
]
"""`said` is a line whose words after the first colon and space were said in public."""
