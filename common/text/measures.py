"""Measures of how near two lists of stems are, each as the textbook has it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

UNKNOWN_IDF = math.log(2) + 1
"""The weight of a stem that no text of the corpus holds."""


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """How many words the longest common subsequence of both has.

    By the bit-parallel method of Hyyrö (2004): a zero in `row` at a place of `first` is a step of the subsequence.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        match = row & places.get(word, 0)
        if match:
            row = (row + match | row - match) & full
    return len(first) - row.bit_count()


def lcs_dice(first: Sequence[str], second: Sequence[str]) -> float:
    """Twice the common subsequence in the words of both together: 0 to 1; 0 for two empty lists."""
    both = len(first) + len(second)
    return 2 * lcs_length(first, second) / both if both else 0.0


def idf(documents: int, holding: int) -> float:
    """The weight of a stem that `holding` of `documents` texts hold."""
    return math.log((documents + 1) / (holding + 1)) + 1


def concept_novelty(tokens: Sequence[str], pool: Iterable[str | Iterable[str]]) -> float:
    """The share of `tokens`, repeats counted, that `pool` (stems, or lists of them) lacks; 1 for no tokens."""
    known: set[str] = set()
    for member in pool:
        known.update((member,) if isinstance(member, str) else member)
    return sum(token not in known for token in tokens) / len(tokens) if tokens else 1.0
