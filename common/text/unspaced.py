"""Words inside text that an index cannot split into words, as tokens for a full-text index.

An index that splits at spaces treats a whole Chinese, Japanese or Thai sentence as one word, and a Korean word with its
particle as another; it also splits at vowel signs, which leaves single consonants of a word of an Indic script. Here
each run of such characters becomes its overlapping pairs, and a search text becomes phrases of pairs: a phrase matches
only where its characters are adjacent.
"""

import unicodedata
from itertools import pairwise
from typing import NamedTuple

import regex

PHRASES_MAX = 24
"""The most distinct phrases of a text to search for; of more, some from each part of it."""

_PAIRED, _WHOLE = r"\p{Han}\p{Hiragana}\p{Hangul}", r"\p{Katakana}ーｰ"
_LONG = (
    r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Devanagari}\p{Bengali}\p{Gurmukhi}\p{Gujarati}\p{Oriya}\p{Tamil}\p{Telugu}"
    r"\p{Kannada}\p{Malayalam}\p{Sinhala}\p{Tibetan}"
)
_RUN = regex.compile(rf"[{_PAIRED}{_LONG}{_WHOLE}][{_PAIRED}{_LONG}{_WHOLE}\p{{M}}]*+")
# NOTE(self): a change of script ends a word, and only Katakana words can be separated without a dictionary.
_PART = regex.compile(
    rf"(?P<whole>[{_WHOLE}]++)|(?P<long>[{_LONG}][{_LONG}\p{{M}}]*+)|(?P<paired>[^{_LONG}{_WHOLE}]++)"
)
_TOUCHING = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\u0300-\u0331]*+")
_SIZES = {"whole": 16, "long": 4, "paired": 2}
_PLANE = 0xF0000


class Unspaced(NamedTuple):
    """A split text: `rest` is what is written with spaces, `phrases` are tokens that must follow each other."""

    rest: str
    phrases: list[tuple[str, ...]]


def index_tokens(text: str) -> list[str]:
    """Return what an index needs in addition to the text itself: nothing for text that it splits into words.

    Pairs in order, each run ended by a single character so that no phrase reaches into the next run; then each
    character once, for searches for one character; then the words that touch a run.
    """
    found: list[str] = []
    singles: dict[str, None] = {}
    for run in _RUN.finditer(text):
        signs = _signs(run.group())
        found += [*_pairs(signs), signs[-1]]
        singles.update(dict.fromkeys(signs))
    return [*found, *singles, *_touching_words(text)]


def _touching_words(text: str) -> list[str]:
    """Return the ordinary words that touch a run without a space, which an index treats as part of it."""
    found: list[str] = []
    end = -1
    for run in _RUN.finditer(text):
        words = list(_TOUCHING.finditer(text, max(end, 0), run.start()))
        found += [word.group() for word in words if word.start() == end or word.end() == run.start()]
        end = run.end()
    if end >= 0 and (word := _TOUCHING.match(text, end)):
        found.append(word.group())
    return found


def take_apart(text: str) -> Unspaced:
    """Return what to search for: the words of `rest`, and each of `phrases`."""
    phrases: dict[tuple[str, ...], None] = {}
    for run in _RUN.finditer(text):
        plain = unicodedata.normalize("NFKC", run.group())
        if len(plain) == 1:
            phrases[(_sign(plain),)] = None
            continue
        for part in _PART.finditer(plain):
            signs, size = [_sign(sign) for sign in part.group()], _SIZES[part.lastgroup or "paired"]
            starts = range(max(1, len(signs) - size + 1)) if len(signs) > 1 else ()
            phrases.update(dict.fromkeys(tuple(_pairs(signs[start : start + size])) for start in starts))
    return Unspaced(str(_RUN.sub(" ", text)), _spread(list(phrases)))


def _signs(run: str) -> list[str]:
    return [_sign(sign) for sign in unicodedata.normalize("NFKC", run)]


def _sign(sign: str) -> str:
    """Return the character, or a private one if an index would split at it (a vowel sign, a radical)."""
    return sign if unicodedata.category(sign)[0] in "LN" else chr(_PLANE + (ord(sign) & 0xFFFF))


def _pairs(signs: list[str]) -> list[str]:
    return [first + second for first, second in pairwise(signs)]


def _spread(phrases: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if len(phrases) <= PHRASES_MAX:
        return phrases
    return [phrases[number * len(phrases) // PHRASES_MAX] for number in range(PHRASES_MAX)]
