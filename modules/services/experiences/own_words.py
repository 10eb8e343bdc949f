"""What of a text of ours is our own: not what it repeats of others' words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_RUN = 4
"""So many words in a row that somebody else wrote as well are theirs."""

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’]?\s+|\n+")  # noqa: RUF001 - the quotation marks as written


def own_words(text: str, others: Iterable[str]) -> str:
    """Return the sentences of `text` that repeat nothing of what others wrote; "" where none is left.

    A short sentence repeats a text that holds all of it.
    """
    theirs = [_words(other) for other in others]
    taken = {run for words in theirs for run in _runs(words, _RUN)}
    whole = [f" {' '.join(words)} " for words in theirs]
    kept = [sentence for sentence in _SENTENCE.split(text) if sentence and not _repeats(sentence, taken, whole)]
    return " ".join(kept)


def _repeats(sentence: str, taken: set[tuple[str, ...]], whole: list[str]) -> bool:
    words = _words(sentence)
    if len(words) < _RUN:
        return bool(words) and any(f" {' '.join(words)} " in text for text in whole)
    return not taken.isdisjoint(_runs(words, _RUN))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _runs(words: list[str], length: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[place : place + length]) for place in range(len(words) - length + 1))
