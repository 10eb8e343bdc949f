"""What a new memory does to the ones that are there. Pure, and the same for every store.

Three things can happen. The same words again refresh what is known. Other words about the same subject take its place,
because a subject is how whoever saves says "this is what I know of it now". And what only happened (an episode, a line
of a day) never takes the place of anything: that something else happened later does not make it untrue.

Words of lesser trust never push out words of greater trust: else any stranger could make the SOUL forget its owner by
naming the right subject. They are kept beside them. Nor do they ever gain trust: when somebody trusted more says the
same, it is their wording that is kept, or else a stranger's subject and tags would stand there as if the owner had
chosen them.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple, get_args

from common.clock import iso, parse_iso
from common.provenance import Trust
from common.session_keys import is_github_thread
from modules.services.memory.admission import Kind, Memory, NewMemory

ACCUMULATING: frozenset[Kind] = frozenset({"episode", "daily"})
TRUSTS: tuple[Trust, ...] = get_args(Trust)
IMPORTANCE = (1, 5)

_SURROGATES = re.compile("[\ud800-\udfff]")
_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """A new memory, fit to be kept, with the keys by which it meets others."""

    kind: Kind
    subject: str
    body: str
    tags: tuple[str, ...]
    importance: int
    source: str
    trust: Trust
    private: bool
    subject_key: str
    body_key: str
    dids: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def body_hash(self) -> str:
        """Short enough for an index; whoever finds a row by it compares kind and subject as well."""
        return hashlib.blake2b(self.body_key.encode(), digest_size=_HASH_BYTES).hexdigest()


def entry(new: NewMemory) -> MemoryEntry:
    """`new` without what no store can hold.

    Raises:
        ValueError: there is nothing to remember in it.

    """
    body = clean(new.body).strip()
    if not body:
        raise ValueError("a memory needs a body")
    subject = " ".join(clean(new.subject).split())
    lowest, highest = IMPORTANCE
    return MemoryEntry(
        kind=new.kind,
        subject=subject,
        body=body,
        tags=united((), new.tags),
        importance=min(max(new.importance, lowest), highest),
        source=clean(new.source),
        trust=new.trust,
        private=new.private,
        subject_key=key(clean(new.filed) or subject),
        body_key=key(body),
        dids=new.dids,
        about=new.about,
    )


def clean(text: str) -> str:
    """`text` without NUL, and with a sign of replacement where half a character stood."""
    return _SURROGATES.sub("\ufffd", text.replace("\0", ""))


def key(text: str) -> str:
    """The form in which two texts count as the same: compatible signs united, no case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def united(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of both, each once, in the order in which they came."""
    found: dict[str, str] = {}
    for tag in (*one, *other):
        plain = " ".join(clean(tag).split())
        if plain:
            found.setdefault(key(plain), plain)
    return tuple(found.values())


def same(new: MemoryEntry, subject_key: str, trust: Trust) -> bool:
    """Whether `new` only repeats a living memory of the same kind and body that stands under `subject_key`.

    Under another subject it does if the body itself names the new one ("Ada lives in Berlin" under "Ada"), for then
    nothing is lost, and if that other subject comes from somebody no less trusted. "Berlin" under "Ada" and under "Bo"
    are two things, and so is what happens twice.
    """
    return new.subject_key == subject_key or (trust in may_lend_its_subject(new) and _names_its_subject(new))


def may_lend_its_subject(new: MemoryEntry) -> tuple[Trust, ...]:
    """Of which trust memories under another subject must be for `new` to be a repetition of one."""
    return () if new.kind in ACCUMULATING else TRUSTS[TRUSTS.index(new.trust) :]


def refreshed(old: Memory, new: MemoryEntry, now: datetime) -> Memory:
    """`old`, said again. A better witness puts it in their own words; a lesser one adds nothing to it.

    Only the owner's own word makes public what was private. What ours say too is nobody else's. The accounts that it
    names stay those of the first time: a handle may have passed to somebody else since.
    """
    before, after = TRUSTS.index(old.trust), TRUSTS.index(new.trust)
    again = replace(
        old,
        private=new.private or (old.private and new.trust != "owner"),
        updated_at=max(old.updated_at, iso(now)),
        about=old.about or new.about,
    )
    if after < before:
        return again
    again = replace(again, importance=max(old.importance, new.importance))
    if after == before:
        dids = old.dids if new.dids else ()
        return replace(again, tags=united(old.tags, new.tags), dids=dids)
    again = replace(again, subject=new.subject, body=new.body, tags=new.tags, source=new.source, trust=new.trust)
    return replace(again, dids=new.dids)


def may_replace(new: MemoryEntry) -> tuple[Trust, ...]:
    """Which living memories under the same kind and subject `new` takes the place of: those of such trust.

    What happened twice stays twice, but in a thread on GitHub, where the newest episode tells all of it.
    """
    if not new.subject_key or (new.kind in ACCUMULATING and not is_github_thread(new.source)):
        return ()
    return TRUSTS[: TRUSTS.index(new.trust) + 1]


def _names_its_subject(new: MemoryEntry) -> bool:
    return not new.subject_key or re.search(rf"(?<!\w){re.escape(new.subject_key)}(?!\w)", new.body_key) is not None


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
