"""The words of whoever asks, as terms that no full-text syntax can trip over.

What people and models write is full of quotes, stars and operators. None of it survives: a term is letters and digits
alone, split where the index splits them, so that each is one word there and never a phrase.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import regex

from common.text.unspaced import take_apart

TERMS_MAX = 16
"""So many distinct words of a text are looked for."""

_TEXT_MAX = 8000
_LONG_WORD, _BEGINNING, _SHARE = 4, 5, 3
# NOTE(self): as FTS5's unicode61 does it, which keeps the combining signs of this range inside a word.
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\u0300-\u0331]*")


class AskedWords(NamedTuple):
    """What a text asks for: words, and phrases of tokens for what is written without spaces."""

    words: list[str]
    phrases: list[tuple[str, ...]]


def asked(text: str) -> AskedWords:
    """What to search for, as it is written."""
    rest, phrases = take_apart(text[:_TEXT_MAX])
    return AskedWords(words(rest), phrases)


def is_about(subject: str, text: str) -> bool:
    """Whether a text speaks of a subject: it has a third of the subject's longer words, and one at least.

    Words count by how they begin, so that most forms of a word are one.
    """
    named = _beginnings(subject)
    shared = named & _beginnings(text)
    return bool(shared) and len(shared) * _SHARE >= len(named)


def _beginnings(text: str) -> set[str]:
    rest, phrases = take_apart(text[:_TEXT_MAX])
    longer = {word[:_BEGINNING] for word in folded(rest).split() if len(word) >= _LONG_WORD}
    return longer | {pair for phrase in phrases for pair in phrase}


def words(text: str) -> list[str]:
    """The distinct words of a text in the order of their last mention, for the last may still be half a word.

    Of many, the longest: short words are the common ones.
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(text[:_TEXT_MAX]):
        found.pop(word.casefold(), None)
        found[word.casefold()] = word
    *others, last = found or [""]
    kept = {*sorted(others, key=len, reverse=True)[: TERMS_MAX - 1], last}
    return [word for key, word in found.items() if key in kept]


def folded(text: str) -> str:
    """All words of a text in small letters and without diacritics, for an index that does not fold by itself."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(sign for sign in unicodedata.normalize("NFKD", plain) if unicodedata.category(sign) != "Mn")
    return " ".join(_WORD.findall(unicodedata.normalize("NFC", bare)))
