"""Tells marks that a model writes with from marks that it writes about: in code, or like a word in a sentence. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from common.text.markdown import close_code, in_code

_TICKS = re.compile(r"`+")
_WINDOW = 60
_AT_LINE_START = re.compile(r"\n[\s\u200b\u2060\ufeff]{0,60}\Z|[|\uff5c]>(?:assistant)?\s{0,60}\Z")
_BEHIND_SENTENCE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d)*]*[ \t]*\Z")
_LIKE_WORD_BEFORE = re.compile(r"[^\s>][ \t]+\Z|[\"'\u201c\u201e\u00ab(\u2018]\Z")
_GOES_ON = re.compile(r"[ \t]*(?:[,;:.!?)\]'\"`\u201d]|[a-z])")
_LIKE_WORD_BEHIND = re.compile(r"[ \t]+[^\s<]|[^\w\s<]")


@dataclass(frozen=True, slots=True)
class Code:
    """The stretches of code in a Markdown text; one that is left open goes on to the end."""

    begins: Sequence[int]
    ends: Sequence[int]
    blocks: Sequence[bool]
    left_open: int
    """Where the fence begins that nothing closes; behind the text without one."""

    def holds(self, position: int) -> bool:
        """Whether `position` is in code."""
        place = bisect_right(self.begins, position) - 1
        return place >= 0 and position < self.ends[place]

    def holds_in_block(self, position: int) -> bool:
        """Whether `position` is in a fenced block."""
        return self.holds(position) and self.blocks[bisect_right(self.begins, position) - 1]


def code_in(text: str) -> Code:
    """The code of `text`: fenced blocks, and spans that end on their line."""
    if "`" not in text and "~~~" not in text:
        return Code((), (), (), len(text) + 1)
    lines = text.split("\n")
    closed = in_code(lines)
    whole = in_code(close_code(text).split("\n"))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    spans: list[tuple[int, int, bool]] = []
    for line, start, is_code in zip(lines, starts, whole, strict=False):
        spans += [(start, start + len(line) + 1, True)] if is_code else _spans(line, start)
    left_open = next((starts[at] for at in range(len(lines)) if whole[at] and not closed[at]), len(text) + 1)
    begins, ends, blocks = zip(*spans, strict=True) if spans else ((), (), ())
    return Code(begins, ends, blocks, left_open)


def leads_line(text: str, start: int) -> bool:
    """Whether only blanks, or the head of a template, stand before `start` on its line."""
    return bool(_AT_LINE_START.search(_before(text, start)))


def leads_sentence(text: str, start: int) -> bool:
    """Whether a sentence ends right before `start`."""
    return bool(_BEHIND_SENTENCE.search(_before(text, start)))


def is_like_word(text: str, start: int, end: int) -> bool:
    """Whether what stands there is set off by blanks or quotes, and its line goes on."""
    return bool(_LIKE_WORD_BEFORE.search(_before(text, start)) and _LIKE_WORD_BEHIND.match(text[end : end + _WINDOW]))


def goes_on(text: str, end: int) -> bool:
    """Whether a sentence goes on behind `end`, on its line."""
    return bool(_GOES_ON.match(text[end : end + _WINDOW]))


def _before(text: str, start: int) -> str:
    return ("\n" if start < _WINDOW else "") + text[max(0, start - _WINDOW) : start]


def _spans(line: str, start: int) -> list[tuple[int, int, bool]]:
    """The code spans of a line: each run of backticks goes to the next one of its length."""
    runs = list(_TICKS.finditer(line))
    following: dict[int, int] = {}
    closing = [0] * len(runs)
    for place in range(len(runs) - 1, -1, -1):
        closing[place] = following.get(len(runs[place][0]), 0)
        following[len(runs[place][0])] = place
    spans: list[tuple[int, int, bool]] = []
    place = 0
    while place < len(runs):
        if closing[place]:
            spans.append((start + runs[place].start(), start + runs[closing[place]].end(), False))
            place = closing[place]
        place += 1
    return spans
