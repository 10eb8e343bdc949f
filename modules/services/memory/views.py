"""MEMORY.md, as a view of the memories of kind `curated`: one section each, `## subject` and the body. Pure.

What is rendered is read back as it was, and what a hand writes is never lost: text before the first heading is a
section of its own (`PREAMBLE`), a heading that stands twice gets a number, a section without text is kept, code blocks
may hold lines that look like headings, and a body that itself has such lines is rendered with a backslash before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from common.provenance import Trust
from common.text.markdown import Heading, in_code, outline, split_at
from modules.services.memory import policy
from modules.services.memory.types import Memory

VIEW = "MEMORY.md"
PREAMBLE = "Before the first heading"
"""The subject of what stands above the first heading."""

_UNTITLED = "Untitled"
_LEVEL = 2
_LINE_END = re.compile(r"\r\n?")
_BLANK_START = re.compile(r"\A(?:[^\S\n]*\n|\ufeff)+")
_TRUST_FIRST: tuple[Trust, ...] = ("owner", "self", "peer", "stranger")


@dataclass(frozen=True, slots=True)
class Section:
    """One section: `title` is unique in its view, `text` has no blank lines around it."""

    title: str
    text: str


def parse_view(markdown: str) -> tuple[Section, ...]:
    """The sections of a file, in its order."""
    lines = _lines(policy.clean(markdown).lstrip("\ufeff"))
    titles: list[str] = []
    texts: list[str] = []
    for heading, below in split_at(lines, _begins_section):
        titles.append(_title(heading.text) if heading else PREAMBLE)
        marked = zip(below, in_code(below), strict=True)
        texts.append(_tidy("\n".join(line if code else _unescaped(line) for line, code in marked)))
    named = zip([PREAMBLE, *_unique(titles[1:])], texts, strict=True)
    return tuple(Section(title, text) for title, text in named if text or title != PREAMBLE)


def render_view(sections: Iterable[Section]) -> str:
    """The file. The same sections give the same bytes."""
    parts: list[str] = []
    for section in sections:
        text = _escaped(_tidy(section.text))
        if section.title == PREAMBLE:
            parts.insert(0, text)
        else:
            parts.append(f"## {section.title}\n\n{text}".rstrip())
    return "\n\n".join(part for part in parts if part) + "\n" if any(parts) else ""


def sections_of(memories: Iterable[Memory], order: Sequence[str] = ()) -> tuple[tuple[Section, Memory], ...]:
    """Each memory as its section: in the given order of titles, then by age; what is trusted more goes first."""
    places = {policy.key(title): place for place, title in enumerate(order)}

    def place(memory: Memory) -> tuple[bool, int, int, str, int]:
        key = policy.key(_title(memory.subject))
        rank = _TRUST_FIRST.index(memory.trust) if key in places else 0
        return (not _above(memory), places.get(key, len(places)), rank, memory.created_at, memory.id)

    ordered = sorted(memories, key=place)
    above = [memory for memory in ordered if _above(memory)][:1]
    rest = [memory for memory in ordered if memory not in above]
    titles = _unique([_title(memory.subject) for memory in rest])
    named = [*((PREAMBLE, memory) for memory in above), *zip(titles, rest, strict=True)]
    return tuple((Section(title, _told(memory)), memory) for title, memory in named)


def with_heading(section: Section) -> str:
    """A body that says its own heading: tells apart bodies that would count as the same, and an empty one from none."""
    return f"## {section.title}\n\n{section.text}".rstrip()


def _told(memory: Memory) -> str:
    """The text of a body, without its own heading if it begins with one."""
    text = _tidy(memory.body)
    first, _, rest = text.partition("\n")
    return _tidy(rest) if first == f"## {_title(memory.subject)}" else text


def _above(memory: Memory) -> bool:
    return policy.key(memory.subject) == policy.key(PREAMBLE)


def _title(words: str) -> str:
    return " ".join(words.split()) or _UNTITLED


def _unique(titles: Sequence[str]) -> list[str]:
    """The same titles, the later of two that count as one with the first number that makes them differ."""
    reserved = {policy.key(PREAMBLE), *(policy.key(title) for title in titles)}
    used = {policy.key(PREAMBLE)}
    unique: list[str] = []
    for title in titles:
        found = title
        if policy.key(title) in used:
            found = next(_free(title, reserved))
        reserved.add(policy.key(found))
        used.add(policy.key(found))
        unique.append(found)
    return unique


def _free(title: str, taken: set[str]) -> Iterator[str]:
    number = 2
    while True:
        candidate = f"{title} ({number})"
        if policy.key(candidate) not in taken:
            yield candidate
        number += 1


def _lines(text: str) -> list[str]:
    return _LINE_END.sub("\n", text).split("\n")


def _tidy(text: str) -> str:
    return _BLANK_START.sub("", _LINE_END.sub("\n", text)).rstrip()


def _escaped(text: str) -> str:
    lines = text.split("\n")
    marked = zip(lines, in_code(lines), strict=True)
    return "\n".join(line if code or not _meant(line) else f"\\{line}" for line, code in marked)


def _unescaped(line: str) -> str:
    return line[1:] if line.startswith("\\") and _meant(line[1:]) else line


def _meant(line: str) -> bool:
    """Whether a line outside of code, without the backslashes before it, would be a heading or open a code block."""
    alone = outline([line.lstrip("\\")])
    return bool(alone.open_fence) or any(not heading.indent and _begins_section(heading) for heading in alone.headings)


def _begins_section(heading: Heading) -> bool:
    return heading.level == _LEVEL and bool(heading.text)
