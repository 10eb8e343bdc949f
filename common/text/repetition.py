"""Whether a text goes round in a loop, as that of a model that finds no end. Pure, and in linear time.

What counts is the form, so that it holds in any language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import regex

from common.text.stems import plain_words

_BEGINNING, _MOST_ALIKE = 5, 4
_LOOP, _LOOP_SHARE = 3, 4
_LEAST_BYTES = 10
"""A sentence of less is an exclamation. A sign says the more, the more bytes it takes."""
_ENDS = regex.compile(r"(?V1)(?<![.!?\u2026])[.!?\u2026]++(?=[\"'\u201d\u2019)\]*_]*+(?:\s|$))|[\p{STerm}--[.!?]]++|\n")


def begins_alike(text: str) -> bool:
    """Return whether many sentences or lines of `text` begin with the same few words."""
    begins = Counter(words[:_BEGINNING] for words in _sentences(text))
    return any(count > _MOST_ALIKE for words, count in begins.items() if len(words) == _BEGINNING)


def is_loop(text: str) -> bool:
    """Return whether a sentence of `text` stands there three times or more, and makes up a quarter of it."""
    said = Counter(filter(None, (" ".join(words) for words in _sentences(text))))
    room = sum(len(sentence) * count for sentence, count in said.items())
    return any(
        count >= _LOOP and len(sentence.encode()) >= _LEAST_BYTES and len(sentence) * count * _LOOP_SHARE >= room
        for sentence, count in said.items()
    )


def _sentences(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each sentence, and of each line that is none."""
    return (tuple(plain_words(piece)) for piece in _ENDS.split(text))
