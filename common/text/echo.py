"""Detects messages that only repeat earlier ones, by the stems of the words that both share. Pure.

Two measures: how much of a message is new to the room at all, and how similar it is to one earlier message (order of
words and weight of words together). Words alone cannot tell an objection from a repetition, so a judge confirms what is
found here (`modules/lives/space/classifiers.py`).
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from string import ascii_letters, digits, whitespace

import regex

from common.constants import ECHO_SHORT_STEMS

_FUNCTION_WORDS = """
    i me my we our you your the a an is are was were be been being have has had do does did will would could should may
    might can shall to of in for on with at by from as into about that this it its and but or so if then than too very
    just also not no nor only same such more most other some any
"""
STOPWORDS = frozenset(_FUNCTION_WORDS.split())

_SPACELESS = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_LINK = regex.compile(
    r"https?://\S+|\bwww\.\S+|(?<![\w@.-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}/\S*", regex.IGNORECASE
)
_ASCII_DROPPED = dict.fromkeys(set(range(128)) - {ord(char) for char in f"{ascii_letters}{digits}{whitespace}_"})
_DROPPED = regex.compile(r"[^\p{L}\p{M}\p{N}_\s]+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
_RUN = regex.compile(rf"{_SPACELESS}[{_SPACELESS}\p{{M}}]*|(?:(?!{_SPACELESS})\S)+", regex.VERSION1)
_IS_SPACELESS = regex.compile(_SPACELESS)

_ROUNDS = 3
_SHORTEST_STEMMED = 4
_KEPT_S = ("ss", "us", "is")
_KEPT_DOUBLE = "lsz"
_NAMES_REMEMBERED = 64
_WORDS_REMEMBERED = 8192


@dataclass(frozen=True, slots=True)
class _Ending:
    """Endings that a word of more than `longer_than` letters loses; with `doubles` a doubled last letter goes too."""

    suffixes: tuple[str, ...]
    longer_than: int
    cut: int
    doubles: bool = False


_ENDINGS = (
    _Ending(("tion", "sion", "ment", "ness", "able", "ible"), 6, 4),
    _Ending(("ful", "ous", "ive"), 5, 3),
    _Ending(("ing",), 5, 3, doubles=True),
    _Ending(("ed",), 4, 2, doubles=True),
    _Ending(("ly",), 4, 2),
    _Ending(("ies",), 4, 2),
    _Ending(("es",), 4, 2),
    _Ending(("s",), 3, 1),
)


def tokenize_for_comparison(text: str, names: Collection[str] = ()) -> list[str]:
    """Return the content words of `text`, lower case, in order; without links and without `names`."""
    text = unicodedata.normalize("NFKC", text).lower()
    if "/" in text or "www." in text:
        text = _LINK.sub(" ", text)
    text = _nameless(text, names)
    words = text.translate(_ASCII_DROPPED).split() if text.isascii() else _words(_DROPPED.sub("", text))
    return [word for word in words if len(word) > 1 and word not in STOPWORDS]


def plain_words(text: str, names: Collection[str] = ()) -> list[str]:
    """Return every word of `text`, lower case, in order; without `names` and without punctuation."""
    return _WORD.findall(_nameless(unicodedata.normalize("NFKC", text).lower(), names))


@lru_cache(maxsize=_WORDS_REMEMBERED)
def simple_stem(word: str) -> str:
    """Return `word`, lower case, without its English endings; a word of less than four letters is unchanged."""
    if len(word) < _SHORTEST_STEMMED:
        return word
    for _ in range(_ROUNDS):
        shorter = _without_ending(word)
        if shorter == word:
            break
        word = shorter
    return word[:-1] if word.endswith("e") and len(word) >= _SHORTEST_STEMMED else word


def tokenize_with_stemming(text: str, names: Collection[str] = ()) -> list[str]:
    """Return the stems of the words from `tokenize_for_comparison`, in order, repeats kept."""
    return [simple_stem(word) for word in tokenize_for_comparison(text, names)]


def _nameless(text: str, names: Collection[str]) -> str:
    return _names(frozenset(names)).sub(" ", text) if names else text


def _words(text: str) -> Iterator[str]:
    for run in _RUN.findall(text):
        if _IS_SPACELESS.match(run):
            yield from (run[place : place + 2] for place in range(max(len(run) - 1, 1)))
        else:
            yield run


@lru_cache(maxsize=_NAMES_REMEMBERED)
def _names(names: frozenset[str]) -> regex.Pattern[str]:
    """Return a pattern of `names` as whole words, also with `@` before or a genitive after them."""
    known = sorted((unicodedata.normalize("NFKC", name) for name in names if name.strip()), key=lambda n: (-len(n), n))
    anyone = "|".join(regex.escape(name) for name in known) or r"(?!)"
    return regex.compile(rf"(?<![\w@])@?(?:{anyone})(?:['\u2019]s)?(?!\w)", regex.IGNORECASE)


def _without_ending(word: str) -> str:
    """Return the word without its first matching ending. `s` stays if it belongs to the word."""
    for ending in _ENDINGS:
        if len(word) <= ending.longer_than or not word.endswith(ending.suffixes):
            continue
        if ending.suffixes == ("s",) and word.endswith(_KEPT_S):
            continue
        shorter = word[: -ending.cut]
        return _undoubled(shorter) if ending.doubles else shorter
    return word


def _undoubled(word: str) -> str:
    return word[:-1] if word[-1] == word[-2] and word[-1] not in _KEPT_DOUBLE else word


_LOOP, _LOOP_SHARE = 3, 4
_LEAST_BYTES = 10
"""A shorter sentence is an exclamation. A character says more, the more bytes it takes."""
_ENDS = regex.compile(r"(?V1)(?<![.!?\u2026])[.!?\u2026]++(?=[\"'\u201d\u2019)\]*_]*+(?:\s|$))|[\p{STerm}--[.!?]]++|\n")


def is_loop(text: str) -> bool:
    """Return whether `text` has the same sentence three times or more, and it makes up a quarter of the text."""
    said = Counter(filter(None, (" ".join(words) for words in _sentences(text))))
    room = sum(len(sentence) * count for sentence, count in said.items())
    return any(
        count >= _LOOP and len(sentence.encode()) >= _LEAST_BYTES and len(sentence) * count * _LOOP_SHARE >= room
        for sentence, count in said.items()
    )


def _sentences(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each sentence, and of each line that is not a sentence."""
    return (tuple(plain_words(piece)) for piece in _ENDS.split(text))


SEMANTIC_ECHO_THRESHOLD, ENSEMBLE_ECHO_THRESHOLD = 0.6, 0.52
CONCEPT_NOVELTY_THRESHOLD = 0.15
CONCEPT_NOVELTY_THRESHOLD_LONG = 0.25
CONCEPT_NOVELTY_LONG_STEMS = 25
ECHO_JUDGE_BORDERLINE_LOW, ECHO_JUDGE_NOVELTY_HIGH = 0.35, 0.40

_FEWEST_STEMS = _FEWEST_WORDS = 3
_LCS_SHARE, _COSINE_SHARE = 0.4, 0.6
_UNKNOWN_WEIGHT = math.log(2) + 1
_MESSAGES_REMEMBERED = 2048
_NOTHING = "none"


@dataclass(frozen=True, slots=True)
class EchoResult:
    """Whether a message repeats one of its peers; `matched_message` is that one, or the most similar one."""

    is_echo: bool
    score: float
    matched_message: str | None


@dataclass(frozen=True, slots=True)
class EnsembleEchoResult:
    """The result of the ensemble.

    Attributes:
        is_echo: whether the message says nothing new.
        score: similarity to one message, 0 to 1; for `concept-novelty`, the share that is not new.
        novelty: share of its stems that no earlier message has, 0 to 1.
        matched_message: the message it repeats, or the most similar one.
        strategy: the measure that found it, with its figures, for people to read; `none` if none did.

    """

    is_echo: bool
    score: float
    novelty: float
    matched_message: str | None
    strategy: str

    @property
    def is_near(self) -> bool:
        """Whether the words are so similar to one message that a judge has to decide."""
        return self.score >= ECHO_JUDGE_BORDERLINE_LOW and self.novelty < ECHO_JUDGE_NOVELTY_HIGH


def semantic_similarity(first: str, second: str) -> float:
    """Return how similar two texts are in words and their order, 0 to 1; 0 if one has fewer than three words."""
    words, others = tokenize_for_comparison(first), tokenize_for_comparison(second)
    if min(len(words), len(others)) < _FEWEST_STEMS:
        return 0.0
    return 2 * lcs_length(words, others) / (len(words) + len(others))


def find_semantic_echo(message: str, peers: Sequence[str], threshold: float = SEMANTIC_ECHO_THRESHOLD) -> EchoResult:
    """Return the first peer with a similarity of `threshold` or more, else the most similar one."""
    score, nearest = 0.0, None
    for peer in peers:
        similarity = semantic_similarity(message, peer)
        if similarity > score:
            score, nearest = similarity, peer
        if similarity >= threshold:
            return EchoResult(is_echo=True, score=similarity, matched_message=peer)
    return EchoResult(is_echo=False, score=score, matched_message=nearest)


def find_said_already(message: str, peers: Sequence[str], names: Collection[str] = ()) -> str | None:
    """Return the newest of `peers` with the same words as `message`, without `names`; it needs three words or more."""
    words = plain_words(message, names)
    if len(words) < _FEWEST_WORDS:
        return None
    return next((peer for peer in reversed(peers) if plain_words(peer, names) == words), None)


def find_semantic_echo_ensemble(
    message: str,
    peers: Sequence[str],
    all_peers: Sequence[str],
    pairwise_threshold: float = ENSEMBLE_ECHO_THRESHOLD,
    novelty_threshold: float | None = None,
    *,
    names: Collection[str] = (),
) -> EnsembleEchoResult:
    """Return whether `message` has only words of the room, or nearly those of one of `peers`.

    Args:
        message: the candidate; with fewer than three stems it is never an echo, with fewer than six only if its words
            are known and similar to one peer.
        peers: messages it is compared with one by one.
        all_peers: messages whose stems count as known, and which weigh the stems; usually `peers` and more.
        pairwise_threshold: the similarity to one peer that is an echo.
        novelty_threshold: the share of new stems below which it is one; None for 0.15, or 0.25 from 25 stems on.
        names: the members of the room; names are not compared.

    """
    known = frozenset(names)
    stems, kinds = _read(message, known)
    if len(stems) < _FEWEST_STEMS:
        return EnsembleEchoResult(is_echo=False, score=0.0, novelty=1.0, matched_message=None, strategy=_NOTHING)
    held = Counter(chain.from_iterable(_read(text, known)[1] for text in all_peers))
    novelty = sum(stem not in held for stem in stems) / len(stems)
    if novelty_threshold is None:
        is_long = len(stems) >= CONCEPT_NOVELTY_LONG_STEMS
        novelty_threshold = CONCEPT_NOVELTY_THRESHOLD_LONG if is_long else CONCEPT_NOVELTY_THRESHOLD
    stale, short = novelty < novelty_threshold, len(stems) < ECHO_SHORT_STEMS
    if stale and not short:
        return _stale(novelty, None)
    held.update(kinds)
    weights = _squared_weights(len(all_peers) + 1)
    squares = {stem: weights[holding] for stem, holding in held.items()}
    threshold = math.inf if short else pairwise_threshold
    compared = {peer: _read(peer, known) for peer in peers}
    score, nearest, strategy = _nearest((stems, kinds), compared, squares, threshold)
    if stale and score >= ECHO_JUDGE_BORDERLINE_LOW:
        return _stale(novelty, nearest)
    return EnsembleEchoResult(strategy != _NOTHING, score, novelty, nearest, strategy)


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length in words of the longest common subsequence of both.

    This is the bit-parallel method of Hyyrö (2004): a zero in `row` at a place of `first` is a step of the subsequence.
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


_Read = tuple[tuple[str, ...], frozenset[str]]
"""The stems of a message in order, and the set of them."""


@lru_cache(maxsize=_MESSAGES_REMEMBERED)
def _read(text: str, names: frozenset[str]) -> _Read:
    stems = tuple(tokenize_with_stemming(text, names))
    return stems, frozenset(stems)


@lru_cache
def _squared_weights(texts: int) -> tuple[float, ...]:
    """Return the squared inverse document frequency of a stem, by how many of `texts` hold it."""
    return tuple((math.log((texts + 1) / (holding + 1)) + 1) ** 2 for holding in range(texts + 1))


def _nearest(
    candidate: _Read, peers: dict[str, _Read], squares: dict[str, float], threshold: float
) -> tuple[float, str | None, str]:
    """Return score, peer and strategy of the first peer that reaches `threshold`, else of the most similar one."""
    stems, kinds = candidate
    length = sum([squares[stem] for stem in kinds])
    score, nearest = 0.0, None
    for peer, (theirs, others) in peers.items():
        shared = kinds & others
        if not shared or len(theirs) < _FEWEST_STEMS:
            continue
        whole = sum([squares.get(stem, _UNKNOWN_WEIGHT**2) for stem in others])
        cosine = sum([squares[stem] for stem in shared]) / math.sqrt(length * whole)
        dice = 2 * lcs_length(stems, [stem for stem in theirs if stem in shared]) / (len(stems) + len(theirs))
        reached = _LCS_SHARE * dice + _COSINE_SHARE * cosine
        if reached > score:
            score, nearest = reached, peer
        if reached >= threshold:
            return reached, peer, f"ensemble(lcs={dice:.2f},tfidf={cosine:.2f})"
    return score, nearest, _NOTHING


def _stale(novelty: float, matched: str | None) -> EnsembleEchoResult:
    strategy = f"concept-novelty({math.floor(novelty * 100 + 0.5)}% new)"
    return EnsembleEchoResult(
        is_echo=True, score=1 - novelty, novelty=novelty, matched_message=matched, strategy=strategy
    )
