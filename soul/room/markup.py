"""The little markup that people and models use in a chat: **bold**, *italic* and `code`, as styled pieces. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from soul.room.text import TAB, wrap_places

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
    """The pieces on lines of at most `columns`."""
    text = "".join(part for _, part in content)
    return [list(_between(content, start, end)) for start, end in wrap_places(text, columns)]


def plain(content: Sequence[Piece]) -> str:
    """The text alone."""
    return "".join(text for _, text in content)


def _between(content: Sequence[Piece], start: int, end: int) -> Iterator[Piece]:
    place = 0
    for style, text in content:
        part = text[max(start - place, 0) : max(end - place, 0)]
        if part:
            yield style, part.replace("\t", TAB)
        place += len(text)
