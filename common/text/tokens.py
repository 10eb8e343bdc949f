"""Estimates how many tokens a text has, if there is no better way to tell."""

from __future__ import annotations

import math

CHARS_PER_TOKEN = 4


def estimate_roughly(text: str) -> int:
    """Return an estimate by the rule of thumb: four characters a token, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)
