"""Which words of a query to search by, and which memory comes first. Pure, and the same for every store.

A word that stands in half of all memories finds half of all memories, and tells nothing. So the rare words of a query
anchor the search: what they find is weighed in full. Common words only add weight to it, or, where no rare word is
there, find the newest entries that have most of them. So the work is bounded, however many memories there are.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from common.clock import parse_iso

HALF_LIFE = timedelta(days=30)

FEW = 400
"""So many matches are weighed one by one. A word with more is common."""

HELPERS = 3
"""So many common words are used, the rarest."""

NEWEST = 100
"""So many of the newest entries are looked at for each common word."""

FAR = 100_000
"""So far back, in entries, common words are looked for together: two that never meet would be sought among all."""

LIMITS = (1, 20)
"""At least and at most so many are found at a time."""

_SHARE = 0.1
_AT_LEAST = 20


@dataclass(frozen=True, slots=True)
class Term:
    """A word as the index is asked for it, and about how many memories have it."""

    match: str
    count: int


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Words to search by: `anchors` together have few matches, `common` are the rarest of the others."""

    anchors: tuple[Term, ...]
    common: tuple[Term, ...]


class Candidate(NamedTuple):
    """A memory that may be shown: `weight` says how well the words fit, higher is better."""

    id: int
    weight: float
    importance: int
    updated_at: str


def plan(terms: Iterable[Term], total: int) -> SearchPlan:
    """How to search for `terms` among about `total` memories; words that nobody has are left out.

    A word that more than a tenth of all have anchors only if there is no rarer one: it would drown an old memory in
    new ones that have nothing to do with the question.
    """
    known = sorted((term for term in terms if term.count), key=lambda term: term.count)
    telling = max(_AT_LEAST, int(total * _SHARE))
    anchors: list[Term] = []
    matches = 0
    for term in known:
        matches += term.count
        if matches > FEW or (anchors and term.count > telling):
            break
        anchors.append(term)
    return SearchPlan(tuple(anchors), tuple(known[len(anchors) : len(anchors) + HELPERS]))


def within(limit: int) -> int:
    """How many to find when `limit` are asked for."""
    least, most = LIMITS
    return min(max(limit, least), most)


def together(common: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Which of the common words to look for in the same memory: all, the two rarest, and each alone."""
    groups = [tuple(common), tuple(common[:2]), *((term,) for term in common)]
    return list(dict.fromkeys(group for group in groups if group))


def rarity(count: int, total: int) -> float:
    """What it is worth to have a word that `count` of `total` memories have: as bm25 weighs it, and never nothing."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def decay(updated_at: str, now: datetime) -> float:
    """1 for what is new, half as much for each half-life since."""
    age = max(now - parse_iso(updated_at), timedelta())
    return float(0.5 ** (age / HALF_LIFE))


def best(candidates: Iterable[Candidate], now: datetime, limit: int) -> list[int]:
    """The ids of the best, best first; of equals the newest.

    Ages are compared with the newest first: once no older one can be good enough, the others are not looked at.
    """
    by_age = sorted(candidates, key=attrgetter("updated_at"), reverse=True)
    most = max((one.weight * one.importance for one in by_age), default=0.0)
    found: list[tuple[float, str, int]] = []
    for one in by_age:
        fresh = decay(one.updated_at, now)
        if len(found) == limit and most * fresh < found[0][0]:
            break
        merit = (one.weight * one.importance * fresh, one.updated_at, one.id)
        if len(found) < limit:
            heapq.heappush(found, merit)
        else:
            heapq.heappushpop(found, merit)
    return [number for _, _, number in sorted(found, reverse=True)]
