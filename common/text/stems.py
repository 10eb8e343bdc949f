"""What of a message counts when two are compared: its words without function words, cut down to their stems.

English endings are cut by a short table that every member of a room shares, so that "caching" and "cached" meet. Words
of other languages stay whole, and writing without spaces is taken in pairs of signs. Links and the names of those who
speak say nothing about a point and are left out. Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters, digits, whitespace

import regex

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
    """Endings that a word of more than `longer_than` letters loses; of a letter then doubled, one goes as well."""

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
    """The words of `text` that carry something, lower case, in order; without links and without `names`."""
    text = unicodedata.normalize("NFKC", text).lower()
    if "/" in text or "www." in text:
        text = _LINK.sub(" ", text)
    text = _nameless(text, names)
    words = text.translate(_ASCII_DROPPED).split() if text.isascii() else _words(_DROPPED.sub("", text))
    return [word for word in words if len(word) > 1 and word not in STOPWORDS]


def plain_words(text: str, names: Collection[str] = ()) -> list[str]:
    """Every word of `text`, lower case, in order; without `names` and without signs."""
    return _WORD.findall(_nameless(unicodedata.normalize("NFKC", text).lower(), names))


@lru_cache(maxsize=_WORDS_REMEMBERED)
def simple_stem(word: str) -> str:
    """`word`, lower case, without its English endings; a word of less than four letters as it is."""
    if len(word) < _SHORTEST_STEMMED:
        return word
    for _ in range(_ROUNDS):
        shorter = _without_ending(word)
        if shorter == word:
            break
        word = shorter
    return word[:-1] if word.endswith("e") and len(word) >= _SHORTEST_STEMMED else word


def tokenize_with_stemming(text: str, names: Collection[str] = ()) -> list[str]:
    """The stems of what `tokenize_for_comparison` leaves, in order, repeats kept."""
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
    """Finds each of `names` as a whole word, also with `@` before it or a genitive after it."""
    known = sorted((unicodedata.normalize("NFKC", name) for name in names if name.strip()), key=lambda n: (-len(n), n))
    anyone = "|".join(regex.escape(name) for name in known) or r"(?!)"
    return regex.compile(rf"(?<![\w@])@?(?:{anyone})(?:['\u2019]s)?(?!\w)", regex.IGNORECASE)


def _without_ending(word: str) -> str:
    """The first row that fits is the one that counts. `s` stays where it belongs to the word."""
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
