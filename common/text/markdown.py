"""Parses the blocks of a Markdown page that decide where it can be cut: ATX headings and fenced code blocks.

Lines count as in CommonMark, with one exception: an unclosed fence opens no block, so that a page that was cut short
loses none of its headings. No text makes it fail, and the cost is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_MOST_OPEN_FENCES = 16
_MAY_COUNT = re.compile(r" {0,3}(?:#|```|~~~)")
_LINE_ENDS = re.compile(r"(?<=\n)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\s]{1,2000}\)")
_LINK_PART = re.compile(r"\](?=\s{0,9}[(\[:])|<(?=[a-z/!?])", re.IGNORECASE)
_CUT_COMMENT = re.compile(r"<!(?:-[^<>\u2026]{0,300})?\u2026")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300})(?<=\S)\*(?![\w*])")
_MARKS = re.compile(r"^[ \t]{0,3}(?:>[ \t]?)+|(?<!\S)#{1,6}[ \t]+|\*\*|~~|`+", re.MULTILINE)
_STARTS_ANEW = re.compile(r"\s*+(?:[-*+]\s|\d+[.)]\s|\||#|```|~~~|>)")
_BLANK_OR_RULE = re.compile(r"[ ]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}|\s*")


@dataclass(frozen=True, slots=True)
class Heading:
    """An ATX heading: `level` 1 to 6, the index of its `line`, the spaces before it, and the text after its `#`s."""

    level: int
    line: int
    indent: int
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The headings of a page in order, and for each line whether it belongs to a code block, fences included.

    `open_fence` is the first unclosed fence, without its indent and language; "" if there is none.
    """

    headings: tuple[Heading, ...]
    in_code: tuple[bool, ...]
    open_fence: str


def outline(lines: Sequence[str]) -> Outline:
    """Return the outline of a page, given as its lines without their ends."""
    places = [place for place, line in enumerate(lines) if _MAY_COUNT.match(line)]
    headings: list[int] = []
    blocks: list[tuple[int, int]] = []
    open_fences: list[str] = []
    if places:
        env = {"headings": headings, "blocks": blocks, "open_fences": open_fences}
        _parser().block.parse("\n".join([*(lines[place] for place in places), "-"]), _parser(), env, [])
    in_code = [False] * len(lines)
    for first, last in blocks:
        begin, end = places[first], places[last] + 1
        in_code[begin:end] = [True] * (end - begin)
    return Outline(
        headings=tuple(_heading_at(places[place], lines[places[place]]) for place in headings),
        in_code=tuple(in_code),
        open_fence=open_fences[0] if open_fences else "",
    )


def in_code(lines: Sequence[str]) -> tuple[bool, ...]:
    """Return for each line, given without its end, whether it belongs to a code block, fences included."""
    return outline(lines).in_code


def split_at(
    lines: Sequence[str], divides: Callable[[Heading], bool]
) -> Iterator[tuple[Heading | None, Sequence[str]]]:
    """Yield the lines before the first dividing heading (with None), then each such heading and the lines under it.

    Only a heading without an indent can divide.
    """
    last, begin = None, 0
    for heading in outline(lines).headings:
        if not heading.indent and divides(heading):
            yield last, lines[begin : heading.line]
            last, begin = heading, heading.line + 1
    yield last, lines[begin:]


def split_sections(markdown: str) -> tuple[str, tuple[str, ...]]:
    """Return the text before the first `## ` heading, and each section with its heading: together the whole page."""
    lines = _LINE_ENDS.split(markdown)
    headings = outline([line.rstrip() for line in lines]).headings
    places = [heading.line for heading in headings if heading.level == 2 and not heading.indent]  # noqa: PLR2004
    parts = ["".join(lines[begin:end]) for begin, end in zip([0, *places], [*places, len(lines)], strict=True)]
    return parts[0], tuple(parts[1:])


def without_headings(lines: Sequence[str]) -> Iterable[str]:
    """Return the lines that are not headings."""
    headings = {heading.line for heading in outline(lines).headings}
    return (line for place, line in enumerate(lines) if place not in headings)


def is_meaningful(markdown: str) -> bool:
    """Return whether a page has more than blank lines, headings without a body, HTML comments and horizontal rules."""
    lines = without_headings(_COMMENT.sub("", markdown).splitlines())
    return any(not _BLANK_OR_RULE.fullmatch(line) for line in lines)


def close_code(text: str) -> str:
    """Return `text` with the missing closing fence of an open code block, on its own line, if one is open."""
    fence = outline(text.split("\n")).open_fence
    return f"{text}\n{fence}" if fence else text


def is_wrapping(line: str) -> bool:
    """Return whether a line opens a code block that a model puts around a whole page of Markdown."""
    return line.strip().lower() in {"```", "```markdown", "```md"}


def unwrapped(lines: list[str]) -> list[str]:
    """Return the lines without a code block that surrounds all of them; its end may be missing."""
    if not lines or not is_wrapping(lines[0]):
        return lines
    return lines[1:-1] if lines[-1].strip() == "```" else lines[1:]


def without_html_comments(text: str) -> str:
    """Return a text without its HTML comments, which readers do not see; an unclosed one extends to the end."""
    return _COMMENT.sub("", text)


def as_prose(text: str) -> str:
    """Return a text for a reader who sees no Markdown: without comments, markup, and the URLs of links."""
    shown = _MARKS.sub("", _LINK.sub(r"\1", without_html_comments(_CUT_COMMENT.sub("\u2026", text))))
    return _EMPHASIS.sub(r"\1", shown).strip()


def without_links(text: str) -> str:
    """Return a text in which no words hide a URL and no picture is shown; a visible URL stays.

    An invisible character breaks every form of link, picture and HTML except plain words and URLs.
    """
    return _LINK_PART.sub("\\g<0>\u200b", _LINK.sub(r"\1", text))


def _heading_at(place: int, line: str) -> Heading:
    marks = line.lstrip(" ")
    text = marks.lstrip("#")
    return Heading(len(marks) - len(text), place, len(line) - len(marks), text.strip())


@cache
def _parser() -> MarkdownIt:
    """Return a parser of headings, fences and other lines. It writes its results into the environment of the call."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes time to load, and `soul status` needs none of it
    from markdown_it.rules_block import fence, heading  # noqa: PLC0415 - the same

    def find_heading(state: StateBlock, start: int, end: int, _silent: bool) -> bool:  # noqa: FBT001 - a rule's form
        if not heading(state, start, end, True):  # noqa: FBT003 - the same
            return False
        state.env["headings"].append(start)
        state.line = start + 1
        return True

    def find_code(state: StateBlock, start: int, end: int, _silent: bool) -> bool:  # noqa: FBT001 - a rule's form
        opened: list[str] = state.env["open_fences"]
        if not fence(state, start, end, True):  # noqa: FBT003 - the same
            return False
        line = state.getLines(start, start + 1, 0, False).lstrip(" ")  # noqa: FBT003 - the same
        marks = line[: len(line) - len(line.lstrip(line[0]))]
        # NOTE(self): if a fence was not closed, a longer one is not either; the limit keeps the search linear.
        if len(opened) >= _MOST_OPEN_FENCES or any(marks.startswith(known) for known in opened):
            return False
        fence(state, start, end, False)  # noqa: FBT003 - the same
        if state.line == end:
            opened.append(marks)
            return False
        state.env["blocks"].append((start, state.line - 1))
        return True

    def pass_over(state: StateBlock, start: int, _end: int, _silent: bool) -> bool:  # noqa: FBT001 - a rule's form
        state.line = start + 1
        return True

    parser = MarkdownIt("zero").enable(["fence", "heading"])
    parser.block.ruler.at("fence", find_code)
    parser.block.ruler.at("heading", find_heading)
    parser.block.ruler.at("paragraph", pass_over)
    return parser


def joined_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines, each paragraph and list item joined: in Markdown a line break inside them has no meaning."""
    pieces: list[list[str]] = []
    goes_on = False
    for line in lines:
        if not line:
            pieces.append([""])
            goes_on = False
        elif goes_on and line.strip() and not _STARTS_ANEW.match(line):
            pieces[-1].append(line)
        else:
            pieces.append([line])
            goes_on = bool(line.strip(" -*+")) and not line.lstrip().startswith("|")
    return [" ".join([first.rstrip(), *map(str.strip, more)]) if more else first for first, *more in pieces]
