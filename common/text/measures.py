"""Measures of how near two lists of stems are, each as the textbook has it. Pure.

`common/text/echo.py` reckons the same numbers faster; these are what it must agree with, and what tests compare it to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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


def compute_idf(corpus: Iterable[Iterable[str]]) -> dict[str, float]:
    """The weight of each stem of a corpus of tokenised texts: the rarer, the heavier; 1 for what all of them hold."""
    documents = [set(text) for text in corpus]
    held = Counter(stem for document in documents for stem in document)
    return {stem: idf(len(documents), holding) for stem, holding in held.items()}


def tfidf_vector(tokens: Iterable[str], weights: Mapping[str, float]) -> dict[str, float]:
    """Each stem of a text with its weight, however often it stands there."""
    return {token: weights.get(token, UNKNOWN_IDF) for token in tokens}


def cosine_similarity(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """The cosine of the angle between two sparse vectors; 0 where one of them is zero."""
    lengths = math.sqrt(_square(first.values()) * _square(second.values()))
    if not lengths:
        return 0.0
    return math.fsum(value * second[key] for key, value in first.items() if key in second) / lengths


def concept_novelty(tokens: Sequence[str], pool: Iterable[str | Iterable[str]]) -> float:
    """The share of `tokens`, repeats counted, that `pool` (stems, or lists of them) lacks; 1 for no tokens."""
    known: set[str] = set()
    for member in pool:
        known.update((member,) if isinstance(member, str) else member)
    return sum(token not in known for token in tokens) / len(tokens) if tokens else 1.0


def _square(values: Iterable[float]) -> float:
    return math.fsum(value * value for value in values)
