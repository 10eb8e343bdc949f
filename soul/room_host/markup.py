"""The little markup that people and models use in a chat: **bold**, *italic* and `code`, as styled pieces. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from soul.terminal.text import TAB, wrap_places

Piece = tuple[str, str]
"""A style, "" for none, and the text that has it."""

_MARKED = re.compile(
    r"""
      `(?P<code>[^`\n]{1,400})`
    | \*\*(?P<bold>(?=[^\s*])[^\n]{1,400}?(?<=[^\s*]))\*\*
    | (?<![\w*])\*(?P<italic>(?=[^\s*])[^*\n]{1,400}(?<=\S))\*(?![\w*])
    """,
    re.VERBOSE,
)
_STYLE = {"code": "fg:ansibrightblack", "bold": "bold", "italic": "italic"}


def pieces(text: str) -> Iterator[Piece]:
    """`text` without its marks, in pieces."""
    end = 0
    for match in _MARKED.finditer(text):
        if match.start() > end:
            yield "", text[end : match.start()]
        kind = match.lastgroup or ""
        yield _STYLE[kind], match[kind]
        end = match.end()
    if end < len(text):
        yield "", text[end:]


def wrapped(content: Sequence[Piece], columns: int) -> list[list[Piece]]:
    """The pieces on lines of at most `columns`, in time that grows with their length only."""
    text = "".join(part for _, part in content)
    ends = list(itertools.accumulate(len(part) for _, part in content))
    lines: list[list[Piece]] = []
    first = 0
    for start, end in wrap_places(text, columns):
        while first < len(ends) and ends[first] <= start:
            first += 1
        lines.append(list(_between(content, ends, first, start, end)))
    return lines


def plain(content: Sequence[Piece]) -> str:
    """The text alone."""
    return "".join(text for _, text in content)


def _between(content: Sequence[Piece], ends: Sequence[int], first: int, start: int, end: int) -> Iterator[Piece]:
    """What stands from `start` to `end`, of which the piece number `first` is the first; `ends`: where pieces end."""
    for number in range(first, len(content)):
        style, text = content[number]
        place = ends[number] - len(text)
        if place >= end:
            return
        if part := text[max(start - place, 0) : end - place]:
            yield style, part.replace("\t", TAB)
