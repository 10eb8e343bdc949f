"""The effect of a new memory on existing ones. Pure, and the same for every store.

There are three cases. The same words again refresh what is known. Other words about the same subject replace it: a
subject is how the author says "this is what I know about it now". An event (an episode, a line of a day) never
replaces anything, as what happens later does not make it untrue.

Words of lesser trust never replace words of greater trust, as otherwise any stranger could make the SOUL forget its
owner by naming the right subject; they are kept beside them. They never gain trust either: when a more trusted person
says the same, that person's wording is kept, as otherwise a stranger's subject and tags would stand there as if the
owner had chosen them.
"""

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
    """A new memory in a form that can be stored, with the keys by which it is compared to others."""

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
        """A hash short enough for an index; rows found by it must be compared by kind and subject too."""
        return hashlib.blake2b(self.body_key.encode(), digest_size=_HASH_BYTES).hexdigest()


def entry(new: NewMemory) -> MemoryEntry:
    """Return `new` without what no store can hold.

    Raises:
        ValueError: it has no content.

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
    """Return `text` without NUL and with a replacement character for half a surrogate pair."""
    return _SURROGATES.sub("\ufffd", text.replace("\0", ""))


def key(text: str) -> str:
    """Return the form in which equal texts are compared: compatibility characters unified, no case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def united(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tags of both, each once, in their order."""
    found: dict[str, str] = {}
    for tag in (*one, *other):
        plain = " ".join(clean(tag).split())
        if plain:
            found.setdefault(key(plain), plain)
    return tuple(found.values())


def same(new: MemoryEntry, subject_key: str, trust: Trust) -> bool:
    """Return whether `new` only repeats a living memory of the same kind and body under `subject_key`.

    Under another subject it does if the body itself names the new subject ("Ada lives in Berlin" under "Ada"), as then
    nothing is lost, and if that other memory is trusted no less. "Berlin" under "Ada" and under "Bo" are two things,
    and so are two events.
    """
    return new.subject_key == subject_key or (trust in may_lend_its_subject(new) and _names_its_subject(new))


def may_lend_its_subject(new: MemoryEntry) -> tuple[Trust, ...]:
    """Return the trust that a memory under another subject must have for `new` to count as a repetition of it."""
    return () if new.kind in ACCUMULATING else TRUSTS[TRUSTS.index(new.trust) :]


def refreshed(old: Memory, new: MemoryEntry, now: datetime) -> Memory:
    """Return `old` as repeated by `new`: greater trust replaces the wording, lesser trust adds nothing.

    Only the owner's own word makes a private memory public. If we say it too, it no longer belongs to others. The named
    accounts stay those of the first time, as a handle may have passed to another account since.
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
    """Return of which trust the living memories under the same kind and subject must be for `new` to replace them.

    Two events stay two, except in a thread on GitHub, where the newest episode tells all of it.
    """
    if not new.subject_key or (new.kind in ACCUMULATING and not is_github_thread(new.source)):
        return ()
    return TRUSTS[: TRUSTS.index(new.trust) + 1]


def _names_its_subject(new: MemoryEntry) -> bool:
    return not new.subject_key or re.search(rf"(?<!\w){re.escape(new.subject_key)}(?!\w)", new.body_key) is not None


HALF_LIFE = timedelta(days=30)

FEW = 400
"""The most matches that are weighed one by one. A word with more is common."""

HELPERS = 3
"""The number of common words that are used, the rarest first."""

NEWEST = 100
"""The number of newest entries that are examined for each common word."""

FAR = 100_000
"""The reach of joint searches for common words, in entries; words that never meet would be sought in all."""

LIMITS = (1, 20)
"""The least and the most entries of a search."""

_SHARE = 0.1
_AT_LEAST = 20


@dataclass(frozen=True, slots=True)
class Term:
    """A word in the form for the index, and about how many memories have it."""

    match: str
    count: int


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The words of a search: `anchors` together have few matches, `common` are the rarest of the others."""

    anchors: tuple[Term, ...]
    common: tuple[Term, ...]


class Candidate(NamedTuple):
    """A memory that may be shown; a higher `weight` means that the words fit better."""

    id: int
    weight: float
    importance: int
    updated_at: str


def plan(terms: Iterable[Term], total: int) -> SearchPlan:
    """Return how to search for `terms` among about `total` memories; words without a match are left out.

    A word that more than a tenth of all memories have is an anchor only if there is no rarer one: it would hide an old
    memory behind new ones that have nothing to do with the question.
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
    """Return `limit` within the least and the most entries of a search."""
    least, most = LIMITS
    return min(max(limit, least), most)


def together(common: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Return which common words to look for in the same memory: all, the two rarest, and each alone."""
    groups = [tuple(common), tuple(common[:2]), *((term,) for term in common)]
    return list(dict.fromkeys(group for group in groups if group))


def rarity(count: int, total: int) -> float:
    """Return the weight of a word that `count` of `total` memories have, as bm25 has it, but never zero."""
    return math.log(1 + (max(total, count) - count + 0.5) / (count + 0.5))


def decay(updated_at: str, now: datetime) -> float:
    """Return 1 for a new memory, halved for each half-life since."""
    age = max(now - parse_iso(updated_at), timedelta())
    return float(0.5 ** (age / HALF_LIFE))


def best(candidates: Iterable[Candidate], now: datetime, limit: int) -> list[int]:
    """Return the ids of the best candidates, best first; of equals the newest first.

    The newest are weighed first; once no older one can be good enough, the rest is skipped.
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
