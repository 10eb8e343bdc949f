"""Detects messages that only repeat earlier ones, by the words that both share.

Two views: how much of it is new to the room at all, and how near it comes to one message (order of words and weight of
words together). Who says the same in other words is found by a judge
(`modules/lives/space/classifiers.py`), not here; where alike words may mean something else, `echo_doubt.py` tells.
Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from common.constants import ECHO_JUDGE_BORDERLINE_LOW, ECHO_SHORT_STEMS, ENSEMBLE_ECHO_THRESHOLD
from common.text.corpus import CorpusRead, Pool, pool_of, read
from common.text.measures import lcs_dice, lcs_length
from common.text.polarity import contradicts, swaps_roles
from common.text.stems import plain_words, tokenize_for_comparison

SEMANTIC_ECHO_THRESHOLD = 0.6
CONCEPT_NOVELTY_THRESHOLD = 0.15
CONCEPT_NOVELTY_THRESHOLD_LONG = 0.25
CONCEPT_NOVELTY_LONG_STEMS = 25
ECHO_SHORT_THRESHOLD = 0.70  # of a message with fewer stems, where one word more or less weighs much

_FEWEST_STEMS = _FEWEST_WORDS = 3
_LCS_SHARE, _COSINE_SHARE = 0.4, 0.6
_CONTRADICTED_FROM = 0.66
_NOTHING = "none"


@dataclass(frozen=True, slots=True)
class EchoResult:
    """Whether a message repeats one of its peers: the one named, or the nearest."""

    is_echo: bool
    score: float
    matched_message: str | None


@dataclass(frozen=True, slots=True)
class EnsembleEchoResult:
    """What the ensemble found.

    Attributes:
        is_echo: the message says nothing new.
        score: nearness to one message, 0 to 1; for `concept-novelty`, the share that is not new.
        novelty: share of its stems that no earlier message has, 0 to 1.
        matched_message: the message it repeats, or comes nearest to.
        strategy: what found it, with its figures, for people to read; `none` if nothing did.

    """

    is_echo: bool
    score: float
    novelty: float
    matched_message: str | None
    strategy: str


def semantic_similarity(first: str, second: str) -> float:
    """How much two texts share of words and their order, unstemmed: 0 to 1; 0 where one has less than three words."""
    words, others = tokenize_for_comparison(first), tokenize_for_comparison(second)
    return lcs_dice(words, others) if min(len(words), len(others)) >= _FEWEST_STEMS else 0.0


def find_semantic_echo(message: str, peers: Sequence[str], threshold: float = SEMANTIC_ECHO_THRESHOLD) -> EchoResult:
    """The first peer as similar as `threshold`, else the most similar one."""
    score, nearest = 0.0, None
    for peer in peers:
        similarity = semantic_similarity(message, peer)
        if similarity > score:
            score, nearest = similarity, peer
        if similarity >= threshold:
            return EchoResult(is_echo=True, score=similarity, matched_message=peer)
    return EchoResult(is_echo=False, score=score, matched_message=nearest)


def find_said_already(message: str, peers: Sequence[str], names: Collection[str] = ()) -> str | None:
    """The newest of `peers` that is `message` word for word, whoever it speaks to; of three words or more.

    Few of them may carry anything, so that no measure compares them: "leave it as it is" says nothing new either.
    """
    words = plain_words(message, names)
    if len(words) < _FEWEST_WORDS:
        return None
    return next((peer for peer in reversed(peers) if plain_words(peer, names) == words), None)


def novelty_threshold(stems: int) -> float:
    """Below which share of new stems a message of so many says nothing new: long ones pass on filler too easily."""
    return CONCEPT_NOVELTY_THRESHOLD_LONG if stems >= CONCEPT_NOVELTY_LONG_STEMS else CONCEPT_NOVELTY_THRESHOLD


def find_semantic_echo_ensemble(
    message: str,
    peers: Sequence[str],
    all_peers: Sequence[str],
    pairwise_threshold: float = ENSEMBLE_ECHO_THRESHOLD,
    novelty_threshold: float = CONCEPT_NOVELTY_THRESHOLD,
    *,
    names: Collection[str] = (),
) -> EnsembleEchoResult:
    """Whether `message` says nothing that the room lacks, or nearly what one of `peers` said.

    Args:
        message: the candidate; of less than three stems it is never an echo.
        peers: messages it is compared with one by one.
        all_peers: messages among which a stem counts as known, and which weigh the stems; usually `peers` and more.
        pairwise_threshold: how near to one peer is an echo.
        novelty_threshold: below which share of new stems it is one; see the function of that name.
        names: who speaks in the room; names are not compared.

    A candidate of less than six stems uses the room's words by nature: it is an echo only if they hold nothing new
    *and* it comes near to one peer, or if it comes very near to one and does not replace its last word or a figure.
    Who denies a message in its own words is no echo of it.

    """
    known = frozenset(names)
    candidate = read(message, known)
    size = len(candidate.stems)
    if size < _FEWEST_STEMS:
        return EnsembleEchoResult(is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy=_NOTHING)
    pool = pool_of(tuple(all_peers), known)
    novelty = sum([stem not in pool.held for stem in candidate.stems]) / size
    stale, short = novelty < novelty_threshold, size < ECHO_SHORT_STEMS
    denied = _denied(candidate, peers, known) if stale else ()
    if stale and not (short or denied):
        return _stale(novelty, None)
    threshold = max(pairwise_threshold, ECHO_SHORT_THRESHOLD) if short else pairwise_threshold
    score, nearest, strategy = _nearest(candidate, peers, pool, threshold, known)
    if stale and (strategy != _NOTHING or (score >= ECHO_JUDGE_BORDERLINE_LOW and nearest not in denied)):
        return _stale(novelty, nearest if short else None)
    return EnsembleEchoResult(strategy != _NOTHING, score, novelty, nearest, strategy)


def _denied(candidate: CorpusRead, peers: Sequence[str], names: frozenset[str]) -> tuple[str, ...]:
    return tuple(peer for peer in peers if _denies(candidate, read(peer, names)))


def _denies(candidate: CorpusRead, other: CorpusRead) -> bool:
    """Whether `candidate` says the opposite of `other` in its words and their order, or gives its parts other roles."""
    if len(candidate.kinds & other.kinds) < _CONTRADICTED_FROM * min(len(candidate.kinds), len(other.kinds)):
        return False
    both = len(candidate.stems) + len(other.stems)
    return swaps_roles(candidate.text, other.text) or (
        contradicts(candidate.text, other.text)
        and 2 * lcs_length(candidate.stems, other.stems) >= _CONTRADICTED_FROM * both
    )


def _replaces(candidate: CorpusRead, other: CorpusRead) -> bool:
    """Whether a short message puts another word in the last place, where the point is, or another figure anywhere."""
    new, gone = candidate.kinds - other.kinds, other.kinds - candidate.kinds
    last = candidate.stems[-1] in new and other.stems[-1] in gone
    return last or any(stem[0].isdigit() for stem in new)


def _nearest(
    candidate: CorpusRead, peers: Sequence[str], pool: Pool, threshold: float, names: frozenset[str]
) -> tuple[float, str | None, str]:
    """The score of the first peer as near as `threshold`, else of the nearest; that peer; how the first was found.

    The order of words is looked at only where it can matter to the result.
    """
    squares, grown = {}, {}
    for stem in candidate.kinds:
        held = pool.held.get(stem, 0)
        square = squares[stem] = pool.squares[held + 1]
        grown[stem] = square - pool.squares[held]
    length = math.fsum(squares.values())
    score, nearest = 0.0, None
    for peer in peers:
        other = read(peer, names)
        shared = candidate.kinds & other.kinds
        if not shared or len(other.stems) < _FEWEST_STEMS:
            continue
        dot = across = 0.0
        for stem in shared:
            dot += squares[stem]
            across += grown[stem]
        cosine = dot / math.sqrt(length * (pool.length(peer, other) + across))
        both = len(candidate.stems) + len(other.stems)
        most = len(shared) + min(candidate.repeats, other.repeats)
        bound = _LCS_SHARE * 2 * most / both + _COSINE_SHARE * cosine
        if bound <= score and bound < threshold:
            continue
        ours, theirs = ([stem for stem in one.stems if stem in shared] for one in (candidate, other))
        dice = 2 * lcs_length(ours, theirs) / both
        reached = _LCS_SHARE * dice + _COSINE_SHARE * cosine
        short = len(candidate.stems) < ECHO_SHORT_STEMS
        if reached >= threshold and not ((short and _replaces(candidate, other)) or _denies(candidate, other)):
            return reached, peer, f"ensemble(lcs={dice:.2f},tfidf={cosine:.2f})"
        if reached > score:
            score, nearest = reached, peer
    return score, nearest, _NOTHING


def _stale(novelty: float, matched: str | None) -> EnsembleEchoResult:
    strategy = f"concept-novelty({math.floor(novelty * 100 + 0.5)}% new)"
    return EnsembleEchoResult(
        is_echo=True, score=1 - novelty, novelty=novelty, matched_message=matched, strategy=strategy
    )
