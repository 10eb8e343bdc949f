"""How many tokens a text will be, for whoever has no better way to tell."""

from __future__ import annotations

import math

CHARS_PER_TOKEN = 4


def estimate_roughly(text: str) -> int:
    """By the rule of thumb: four characters each, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)
