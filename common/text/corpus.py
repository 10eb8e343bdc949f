"""Messages as they are compared: the stems of each, and in how many messages of a room each stem is. Pure.

What was read of recent messages is remembered, since a room is compared with again and again.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from cachetools import LRUCache

from common.text.measures import UNKNOWN_IDF, idf
from common.text.stems import tokenize_with_stemming

_MESSAGES_REMEMBERED = 2048
_POOLS_REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class CorpusRead:
    """A message as it is compared: as written, its stems in order, each of them once, how many are there again."""

    text: str
    stems: tuple[str, ...]
    kinds: frozenset[str]
    repeats: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Messages as a corpus that a candidate is about to join.

    Attributes:
        held: in how many messages each stem is.
        squares: the squared weight of a stem that so many texts hold, the candidate included if it does.
        lengths: the squared length of each message's vector, as if the candidate held none of its stems.

    """

    held: dict[str, int]
    squares: tuple[float, ...]
    lengths: dict[str, float]

    def length(self, text: str, message: CorpusRead) -> float:
        known = self.lengths.get(text)
        if known is None:
            held, squares = self.held.get, self.squares
            known = math.fsum([squares[held(stem, 0)] for stem in message.kinds])
            self.lengths[text] = known
        return known


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def read(text: str, names: frozenset[str]) -> CorpusRead:
    """`text` without `names`, cut to stems."""
    stems = tokenize_with_stemming(text, names)
    kinds = frozenset(stems)
    return CorpusRead(text, tuple(stems), kinds, len(stems) - len(kinds))


@lru_cache(maxsize=_POOLS_REMEMBERED)
def pool_of(texts: tuple[str, ...], names: frozenset[str]) -> Pool:
    """The corpus of `texts`, read without `names`."""
    return Pool(_COUNTS.held(texts, names), _squares(len(texts) + 1), {})


class _Counts:
    """In how many messages of a room each stem is; a room that lost its oldest and got a new one is not read anew."""

    def __init__(self) -> None:
        self._before = LRUCache[tuple[tuple[str, ...], frozenset[str]], tuple[str, dict[str, int]]](_POOLS_REMEMBERED)

    def held(self, texts: tuple[str, ...], names: frozenset[str]) -> dict[str, int]:
        before = self._before.pop((texts[:-1], names), None)
        if before:
            held = _moved(before[1], read(before[0], names).kinds, read(texts[-1], names).kinds)
        else:
            held = dict(Counter(chain.from_iterable(read(text, names).kinds for text in texts)))
        if len(texts) > 1:
            self._before[texts[1:], names] = (texts[0], held)
        return held


_COUNTS = _Counts()


def _moved(held: dict[str, int], gone: frozenset[str], new: frozenset[str]) -> dict[str, int]:
    held = held.copy()
    for stem in gone:
        if held[stem] > 1:
            held[stem] -= 1
        else:
            del held[stem]
    for stem in new:
        held[stem] = held.get(stem, 0) + 1
    return held


@lru_cache(maxsize=_POOLS_REMEMBERED)
def _squares(documents: int) -> tuple[float, ...]:
    weights = (UNKNOWN_IDF, *(idf(documents, holding) for holding in range(1, documents + 1)))
    return tuple(weight * weight for weight in weights)
