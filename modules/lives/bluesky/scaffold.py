"""The words of our own prompt, which no reader should see: runs of words, and whole lines however short. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from common.text.stems import plain_words

_RUN_WORDS = 5
_LEAST_WORDS = 2
_PLACEHOLDER = re.compile(r"\{\{\w{1,40}\}\}")
_LABELLED = re.compile(r"(: @?\{\{\w{1,40}\}\}) ")
_PIECES = re.compile(r"(?<=[.!?])[^\S\n]|\n")
_EDGES = " \t-*>\"'.!:;\u2026\u201c\u201d"

Runs = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What only our own prompt says: `runs` of five words, and `lines` as patterns of a whole line or sentence."""

    runs: Runs = frozenset()
    lines: tuple[re.Pattern[str], ...] = ()

    def is_in(self, text: str) -> bool:
        """Whether `text` holds one of the runs, or consists of nothing but lines."""
        if any(run in self.runs for run in _runs(text)):
            return True
        pieces = _pieces(text)
        return bool(pieces) and all(any(line.fullmatch(piece) for line in self.lines) for piece in pieces)


def scaffold_of(templates: Iterable[str], told: Iterable[str], others: Iterable[str]) -> Scaffold:
    """The scaffold of one prompt.

    Args:
        templates: sections of skills, with their places for variables.
        told: such sections as they were filled in, without the words of others.
        others: texts whose words may be said: the posts of a thread, the SOUL's own pages.

    """
    templates = tuple(templates)
    lines = (_line(piece) for text in templates for piece in _pieces(_LABELLED.sub(r"\1\n", text)))
    return Scaffold(word_runs([*templates, *told]) - word_runs(others), tuple(filter(None, lines)))


def word_runs(texts: Iterable[str]) -> Runs:
    """All runs of five words in a row; a place for a variable ends a run."""
    parts = (part for text in texts for part in _PLACEHOLDER.split(text))
    return frozenset(run for part in parts for run in _runs(part))


def _runs(text: str) -> Iterable[tuple[str, ...]]:
    words = plain_words(text)
    return (tuple(words[start : start + _RUN_WORDS]) for start in range(len(words) - _RUN_WORDS + 1))


def _pieces(text: str) -> list[str]:
    """Lines and sentences, in lower case, with single spaces and without signs around them; headings are none."""
    pieces = (piece.strip() for piece in _PIECES.split(text) if not piece.lstrip().startswith("#"))
    return [bare for piece in pieces if (bare := " ".join(piece.lower().split()).strip(_EDGES))]


def _line(piece: str) -> re.Pattern[str] | None:
    """A pattern of a piece of a template, None if too little of it is ours.

    After a label of one word a single word may stand, after a longer one anything; elsewhere a place for a variable
    counts only in a line with a figure or a name in it, since "Today is a good day" is nobody's prompt.
    """
    first, *rest = _PLACEHOLDER.split(piece)
    words = plain_words(" ".join((first, *rest)))
    is_label = bool(rest) and first.rstrip("@ ").endswith(":")
    if len(words) < (1 if is_label else _LEAST_WORDS):
        return None
    gap = r"\S{1,300}" if is_label and len(words) == 1 else ".{1,300}"
    named = "(?=.*[0-9@])" if rest and not is_label else ""
    return re.compile(named + gap.join(re.escape(part) for part in (first, *rest)))
