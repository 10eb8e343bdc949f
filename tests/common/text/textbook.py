"""Weights and cosine of tf-idf as the textbook has them, which the faster reckoning of the product must agree with."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from common.text.measures import UNKNOWN_IDF, idf


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


def _square(values: Iterable[float]) -> float:
    return math.fsum(value * value for value in values)
