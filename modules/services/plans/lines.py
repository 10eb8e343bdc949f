"""The lines of a plan's body: its sections and the block of each task, for parsing and for updates.

The format is specified by lines, and an update must keep every other byte; so this is a small line scanner, and only
code blocks are found by a Markdown parser. An HTML comment of several lines counts as code: GitHub does not show it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from common.text.markdown import in_code
from common.text.strings import as_typed

Section = Literal["goal", "context", "tasks", "verification"]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SECTION = re.compile(r" {0,3}##[ \t]+[^\w\n]{0,8}(goal|context|tasks|verification)", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}##(?:[ \t]|$)")
_TASK = re.compile(
    r" {0,3}#{2,3}[ \t]+(?P<before>(?:[^\w\n]|\[x\]){0,12}?)(?P<mark>[*_]{1,3})?"
    r"task[ \t#*_-]{0,8}(?P<number>[0-9]{1,9})(?:[*_]{1,3})?(?!\.?\w)[ \t]{0,8}"
    r"(?:(?:[:\uff1a.)]|[-\u2013\u2014](?=[ \t]))(?P<title>.*)|[*_~\s]*\Z)",
    re.IGNORECASE,
)
_LIKE_TASK = re.compile(r" {0,3}#{2,3}[ \t]+[^\w\n]{0,12}task(?![a-rt-z])", re.IGNORECASE)
_ESCAPED = re.compile(r"( {0,3})\\(\\*(?:##|```|~~~|<!--).*)")
_OPENS_COMMENT = r"<!--(?!.*-->)"
_A_TASK = r"#{2,3}[ \t]+[\W_]{0,12}(?:x\])?[\W_]{0,12}task"
_IN_TASK = re.compile(rf" {{0,3}}(?:##(?:[ \t]|$)|{_A_TASK}|{_OPENS_COMMENT})", re.IGNORECASE)
_IN_CONTEXT = re.compile(
    rf" {{0,3}}(?:##[ \t]+[^\w\n]{{0,8}}(?:goal|context|tasks|verification)|{_A_TASK}|{_OPENS_COMMENT})",
    re.IGNORECASE,
)
_ALONE = re.compile(rf" {{0,3}}(?:##(?:[ \t]|$)|{_A_TASK}|```|~~~|{_OPENS_COMMENT})", re.IGNORECASE)
_BEGINS_COMMENT = re.compile(rf" {{0,3}}{_OPENS_COMMENT}")


@dataclass(slots=True)
class TaskBlock:
    """The lines of one task: `heading` is the index of its heading, `end` that of the first line that is not its own.

    `before` is the text before the name of the task in its heading, such as a mark that it is done.
    """

    number: int
    title: str
    heading: int
    end: int
    before: str = ""


@dataclass(slots=True)
class Scan:
    """A body split into lines, each with its line end.

    `texts` are the lines without line ends and, outside of code, as they look (`as_typed`). `code` tells which of them
    belong to a code block, `sections` has the indices of their lines, and `tasks` are in the order of the body.
    `repeated` are headings with the number of an earlier task, `outside` task headings in another section, `unread`
    headings among the tasks without a number.
    """

    lines: list[str]
    texts: list[str]
    code: Sequence[bool]
    sections: dict[Section, list[int]] = field(default_factory=dict)
    tasks: list[TaskBlock] = field(default_factory=list)
    repeated: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)


def scan(body: str) -> Scan:
    """Scan the lines of a body into sections and tasks. The cost is linear in the length of the body."""
    lines = _LINE.findall(body)
    raw = [line.rstrip("\r\n") for line in lines]
    code = _unshown(raw)
    texts = [text if is_code else as_typed(text) for text, is_code in zip(raw, code, strict=True)]
    found = Scan(lines, texts, code)
    reader = _PlanReader(found)
    for place in range(len(texts)):
        reader.read(place)
    return found


def _unshown(lines: Sequence[str]) -> Sequence[bool]:
    """Return which lines belong to code, or to an HTML comment of several lines; one that nothing closes hides none."""
    found = list(in_code(lines))
    last, is_open = max((place for place, line in enumerate(lines) if "-->" in line), default=-1), False
    for place, line in enumerate(lines[: last + 1]):
        is_open = is_open or (not found[place] and _BEGINS_COMMENT.match(line) is not None)
        found[place] |= is_open
        is_open = is_open and "-->" not in line
    return found


class _PlanReader:
    """Reads one line after the other, keeping track of the section and the task that it belongs to."""

    def __init__(self, found: Scan) -> None:
        self._found = found
        self._section: Section | None = None
        self._task: TaskBlock | None = None
        self._numbers: set[int] = set()

    def read(self, place: int) -> None:
        found, text = self._found, self._found.texts[place]
        if found.code[place]:
            self._keep(place)
        elif heading := _TASK.match(text):
            self._begin(place, heading)
        elif self._section == "tasks" and _LIKE_TASK.match(text) and not _SECTION.match(text):
            found.unread.append(place)
            self._keep(place)
        elif _HEADING.match(text):
            self._enter(place, _SECTION.match(text))
        else:
            self._keep(place)

    def _enter(self, place: int, known: re.Match[str] | None) -> None:
        """Enter a section; if it was seen before, its heading inside a task is a heading of the description."""
        section = _section(known) if known else None
        is_text = section in self._found.sections and self._task if section else self._section == "context"
        if is_text:
            self._keep(place)
        else:
            self._task, self._section = None, section
            if section:
                self._found.sections.setdefault(section, [])

    def _begin(self, place: int, heading: re.Match[str]) -> None:
        if self._section != "tasks":
            self._found.outside.append(place)
            self._keep(place)
            return
        number, title, mark = int(heading["number"]), (heading["title"] or "").strip(), heading["mark"] or ""
        title = title.removesuffix("~~" if "~~" in heading["before"] else mark).strip() or f"Task {number}"
        self._task = TaskBlock(number, title, place, place + 1, heading["before"])
        if number in self._numbers:
            self._found.repeated.append(place)
        else:
            self._numbers.add(number)
            self._found.tasks.append(self._task)

    def _keep(self, place: int) -> None:
        if self._task:
            self._task.end = place + 1
        elif self._section:
            self._found.sections[self._section].append(place)


def _section(match: re.Match[str]) -> Section:
    names: dict[str, Section] = {one: one for one in ("goal", "context", "tasks", "verification")}
    return names[match[1].lower()]


def escape(text: str, *, in_task: bool) -> str:
    """Return a text of several lines with a backslash before each line that would be read as a part of the plan.

    In the context these are the headings of sections and tasks, in the description of a task all lines that end a task.
    """
    opens = _IN_TASK if in_task else _IN_CONTEXT
    texts = text.split("\n")
    marked = (
        line if is_code or not (opens.match(line) or _ESCAPED.match(line)) else _with_backslash(line)
        for line, is_code in zip(texts, _unshown(texts), strict=True)
    )
    return "\n".join(marked)


def escape_line(line: str) -> str:
    """Return a one-line text with a backslash before it if it would be read as a part of the plan, or as code."""
    return _with_backslash(line) if _ALONE.match(line) or _ESCAPED.match(line) else line


def unescape(line: str) -> str:
    """Return a line outside of code without the backslash that `escape` added."""
    found = _ESCAPED.fullmatch(line)
    return f"{found[1]}{found[2]}" if found else line


def _with_backslash(line: str) -> str:
    bare = line.lstrip(" ")
    return f"{line[: len(line) - len(bare)]}\\{bare}"
