"""A conversation as one page, for a model that is to say what of it matters. Pure.

What people and the SOUL said stands there nearly whole; what tools printed is cut short, for it was only the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from common.facts import SaidLine
from common.provenance import Provenance
from modules.runtime.llm.types import Block, ToolAnswer, ToolCall
from modules.services.sessions.rows import blocks, words_of
from modules.services.sessions.types import MessageRow

_WORDS_CHARS = 2000
_TOOL_CHARS = 300


def transcript(rows: Iterable[MessageRow], estimate: Callable[[str], int], most_tokens: int) -> str:
    """Line by line who said what; where it is too long, the oldest lines but the first are left out."""
    first, *lines = [line for row in rows for line in _lines(row)] or [""]
    room = most_tokens - estimate(first)
    kept: list[str] = []
    for line in reversed(lines):
        room -= estimate(line) + 1
        if room < 0:
            break
        kept.append(line)
    left_out = ["[…]"] if len(kept) < len(lines) else []
    return "\n".join([first, *left_out, *reversed(kept)])


def said_lines(rows: Iterable[MessageRow]) -> tuple[SaidLine, ...]:
    """What people and the SOUL said, without what tools were asked and answered."""
    said = (row for row in rows if not row.is_note)
    spoken = (
        (row, " ".join(words_of(one).split())) for row in said for one in blocks(row.message) if not _is_tool(one)
    )
    names = {"YOU": "", "OWNER": "owner", "THEM": "them"}
    return tuple(SaidLine(names[_who(row)], words) for row, words in spoken if words)


def _is_tool(block: Block) -> bool:
    return isinstance(block, ToolCall | ToolAnswer)


def _lines(row: MessageRow) -> Iterator[str]:
    for block in blocks(row.message):
        words = " ".join(words_of(block).split())
        match block:
            case ToolCall():
                yield f"YOU used {_cut(words, _TOOL_CHARS)}"
            case ToolAnswer():
                yield f"TOOL {block.name}: {_cut(words, _TOOL_CHARS)}"
            case _ if words:
                yield f"{_who(row)}: {_cut(words, _WORDS_CHARS)}"


def _who(row: MessageRow) -> str:
    if row.is_note:
        return "NOTE"
    if row.role == "assistant":
        return "YOU"
    return "OWNER" if row.provenance is Provenance.OWNER else "THEM"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
