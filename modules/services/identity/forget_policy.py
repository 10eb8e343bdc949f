"""What SELF.md is without the passages that name somebody, and whether it may become that without the owner. Pure.

A list item without items below it, and a paragraph of one line, can go alone: nothing else rests on them. Of anything
larger only the owner knows what else it says, as of what merely holds a display name, which may be any word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.text.markdown import Outline, outline, split_sections
from modules.services.identity.policy import operational_parts

Names = Callable[[str], bool]

_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_INDENT = re.compile(r"\s*")
_LARGER = re.compile(r"\s*[|<]")
_OF_MORE = "it would lose more than lines that are about one person alone"
_OPERATIONAL = "it would change how the SOUL is run"


@dataclass(frozen=True, slots=True)
class Without:
    """A text without what names somebody, and why the owner must see that first ("" if they need not)."""

    text: str
    hold: str = ""


@dataclass(frozen=True, slots=True)
class _LineBlock:
    """Lines that can only go together, the last not included, and whether nothing else rests on them."""

    begin: int
    end: int
    goes_alone: bool = False


def without(text: str, names: Names, is_certain: Names) -> Without | None:
    """Return `text` without what names somebody; None where no part can be taken out of it so that nothing does.

    Args:
        text: all of SELF.md.
        names: whether a text may name them.
        is_certain: whether it names them, and can mean nobody and nothing else.

    """
    lines = text.splitlines()
    page = outline(lines)
    gone: set[int] = set()
    hold = ""
    for place, line in enumerate(lines):
        if place in gone or not names(line):
            continue
        block = _block_at(lines, place, page)
        gone |= set(range(block.begin, block.end))
        if not (block.goes_alone and is_certain("\n".join(lines[block.begin : block.end]))):
            hold = _OF_MORE
    kept = "".join(line for place, line in enumerate(text.splitlines(keepends=True)) if place not in gone)
    if names_anywhere(kept, names):
        start, sections = split_sections(kept)
        kept, hold = "".join([start, *(one for one in sections if not names_anywhere(one, names))]), _OF_MORE
    if not kept.strip() or names_anywhere(kept, names):
        return None
    if not hold and operational_parts(text) != operational_parts(kept):
        hold = _OPERATIONAL
    return Without(kept, hold)


def lines_lost(old: str, new: str) -> frozenset[str]:
    """Return the lines of `old` that stand nowhere in `new`."""
    return frozenset(filter(str.strip, old.splitlines())) - frozenset(new.splitlines())


def names_anywhere(text: str, names: Names) -> bool:
    """Return whether a text names somebody, also over the end of a line."""
    return names(text) or names(" ".join(text.split()))


def _block_at(lines: Sequence[str], place: int, page: Outline) -> _LineBlock:
    heading = next((one for one in page.headings if one.line == place), None)
    if heading is not None:
        after = (one.line for one in page.headings if one.line > place and one.level <= heading.level)
        return _LineBlock(place, next(after, len(lines)))
    if page.in_code[place]:
        return _LineBlock(*_run(place, lambda other: page.in_code[other], len(lines)))
    headings = {one.line for one in page.headings}

    def is_text(other: int) -> bool:
        return bool(lines[other].strip()) and other not in headings and not page.in_code[other]

    begin, end = _run(place, is_text, len(lines))
    item = next((other for other in range(place, begin - 1, -1) if _ITEM.match(lines[other])), None)
    return _paragraph(lines, place, begin, end) if item is None else _item(lines, item, end)


def _run(place: int, belongs: Callable[[int], bool], count: int) -> tuple[int, int]:
    """Return where the lines around `place` that belong together begin, and where they end."""
    begin, end = place, place + 1
    while begin > 0 and belongs(begin - 1):
        begin -= 1
    while end < count and belongs(end):
        end += 1
    return begin, end


def _item(lines: Sequence[str], item: int, run_end: int) -> _LineBlock:
    indent = _indent(lines[item])
    beside = (at for at in range(item + 1, run_end) if _ITEM.match(lines[at]) and _indent(lines[at]) <= indent)
    end = next(beside, run_end)
    has_items = any(_ITEM.match(lines[at]) for at in range(item + 1, end))
    goes_on = end == run_end and end + 1 < len(lines) and _indent(lines[end + 1]) > indent
    return _LineBlock(item, end, goes_alone=not has_items and not goes_on)


def _paragraph(lines: Sequence[str], place: int, begin: int, run_end: int) -> _LineBlock:
    end = next((at for at in range(place, run_end) if _ITEM.match(lines[at])), run_end)
    leads = end < run_end or lines[end - 1].rstrip().endswith(":")
    return _LineBlock(begin, end, goes_alone=end - begin == 1 and not leads and not _LARGER.match(lines[begin]))


def _indent(line: str) -> int:
    found = _INDENT.match(line)
    return found.end() if found else 0
