"""The kinds of lines shown to the owner."""

from __future__ import annotations

from typing import Literal

LineKind = Literal[
    "info", "done", "warn", "error", "act", "think", "mem", "sys", "refl", "mind", "queue", "social", "said"
]
"""`said` is a line in which the text after the first colon and space was said in public."""
