"""The markup that people and models use in a chat (**bold**, *italic*, `code`) as styled fragments, wrapped. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich import get_console
from rich.text import Text

_TAB_COLUMNS = 4

Piece = tuple[str, str]
"""A prompt_toolkit style ("" for none) and the text that has it."""

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
    """Yields `text` in styled pieces, without the characters that mark them."""
    end = 0
    for match in _MARKED.finditer(text):
        if match.start() > end:
            yield "", text[end : match.start()]
        kind = match.lastgroup or ""
        yield _STYLE[kind], match[kind]
        end = match.end()
    if end < len(text):
        yield "", text[end:]


def wrapped(content: Iterable[Piece], columns: int) -> list[list[Piece]]:
    """Returns the pieces on lines of at most `columns`, broken between words where possible, in linear time."""
    text = Text.assemble(*((words, style) for style, words in content))
    lines = text.wrap(get_console(), columns, overflow="fold", tab_size=_TAB_COLUMNS)
    return [list(_line_pieces(line)) for line in lines]


def plain(content: Iterable[Piece]) -> str:
    """Returns the text of the pieces."""
    return "".join(text for _, text in content)


def _line_pieces(line: Text) -> Iterator[Piece]:
    line.rstrip()
    end = 0
    for span in line.spans:
        if span.start > end:
            yield "", line.plain[end : span.start]
        yield str(span.style), line.plain[span.start : span.end]
        end = span.end
    if end < len(line.plain):
        yield "", line.plain[end:]
