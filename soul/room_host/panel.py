"""Formats a room for a terminal: its messages and events as rows, and the panel of who is present. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rich import get_console
from rich.text import Text

from adapters.space.roster import RosterEntry
from adapters.space.server import LogLevel
from adapters.space.types import (
    ActionDone,
    Claimed,
    Joined,
    Left,
    LogEntry,
    Reflected,
    Said,
    SpaceEvent,
    StateChanged,
    WorkspaceProgress,
)
from common.clock import local, parse_iso_or_none
from common.text.strings import rolling_hash
from soul.terminal.panel import fit, one_line, strip_control, width

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
    """Yield `text` in styled pieces, without the characters that mark them."""
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
    """Return the pieces on lines of at most `columns`, broken between words if possible, in linear time."""
    text = Text.assemble(*((words, style) for style, words in content))
    lines = text.wrap(get_console(), columns, overflow="fold", tab_size=_TAB_COLUMNS)
    return [list(_line_pieces(line)) for line in lines]


def plain(content: Iterable[Piece]) -> str:
    """Return the text of the pieces."""
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


COLOURS = (
    "ansicyan",
    "ansigreen",
    "ansiyellow",
    "ansimagenta",
    "ansibrightblue",
    "ansibrightcyan",
    "ansibrightgreen",
    "ansibrightmagenta",
)
SYMBOLS = "●◆★♥■•○"


def name_hash(name: str) -> int:
    """Return the hash of a name: `h * 31 + unit` over its UTF-16 units in 32 bits, as an absolute value."""
    return abs(rolling_hash(name))


def colour(name: str) -> str:
    """Return the colour of a name, as prompt_toolkit calls it."""
    return COLOURS[name_hash(name) % len(COLOURS)]


def symbol(name: str) -> str:
    """Return the character shown before a name."""
    return SYMBOLS[name_hash(name) % len(SYMBOLS)]


Kind = Literal["said", "quiet", "note"]
NoteLevel = LogLevel | Literal["done"]
_DIM = "fg:ansibrightblack"
_TIME_COLUMNS = 10  # HH:MM:SS and two spaces
_MARK_COLUMNS = 2
_LABEL_COLUMNS = 8
_NAME_COLUMNS = 32
_LEAST_COLUMNS = 16
_QUIET_CHARS = 2_000
DRAWN_CHARS = 4_000
"""How many characters of one message are shown; the record has all of them."""
_RECORDED = {
    "join": "joined",
    "leave": "left",
    "claim": "claim",
    "action_result": "result",
    "reflection": "insight",
    "workspace_state": "plan",
}
_LEVELS: dict[NoteLevel, tuple[str, str]] = {
    "info": ("○", ""),
    "done": ("✓", "fg:ansigreen"),
    "warn": ("◆", "fg:ansiyellow"),
    "error": ("✗", "fg:ansired"),
}


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event. `label` is a single word for a quiet row or a note, `name` the member, `text` the rest."""

    at: datetime
    kind: Kind
    text: str
    name: str = ""
    label: str = ""
    mark: str = ""
    style: str = ""


def row_of(event: SpaceEvent, at: datetime) -> EventRow | None:
    """Return the row of an event, or None for an event that only the panel shows."""
    if isinstance(event, Said):
        return said(event.name, event.content, at)
    parts = _quiet_parts(event)
    return _quiet(at, *parts) if parts else None


def _quiet_parts(event: SpaceEvent) -> tuple[str, str, str, str] | None:
    """Return mark, label, name and text of a quiet row, or None for an event without one."""
    row = None
    match event:
        case Joined():
            row = "→", "joined", event.name, f"v{event.version}"
        case Left():
            row = "←", "left", event.name, ""
        case Claimed():
            row = "▹", "claim", event.name, f"{event.action}  {event.target}"
        case ActionDone(success=True):
            row = "✓", "done", event.name, f"{event.action}  {event.link or event.target}"
        case ActionDone():
            row = "✗", "failed", event.name, f"{event.action}  {event.error or event.target}"
        case Reflected():
            row = "❖", "insight", event.name, event.summary
        case WorkspaceProgress():
            row = "▪", "plan", event.name, progress(event)
        case StateChanged(state="blocked"):
            row = "▨", "blocked", event.name, event.detail
    return row


def entry_row(entry: LogEntry, at: datetime) -> EventRow | None:
    """Return the row of a line of the record, or None if it has none; `at` replaces a time that cannot be read."""
    moment = parse_iso_or_none(entry.timestamp) or at
    if entry.type == "chat":
        return said(entry.agent_name, entry.content, moment)
    label = _RECORDED.get(entry.type)
    return _quiet(moment, "·", label, entry.agent_name, entry.content) if label else None


def said(name: str, content: str, at: datetime) -> EventRow:
    """Return the row of a message, cut after `DRAWN_CHARS` characters."""
    who = fit(one_line(name), _NAME_COLUMNS)
    words = strip_control(content[:DRAWN_CHARS]).strip("\n")
    if len(content) > DRAWN_CHARS:
        words += f" … more was said: {len(content) - DRAWN_CHARS:,} characters"
    return EventRow(at, "said", words, who, mark=symbol(name), style=f"fg:{colour(name)}")


def note(level: NoteLevel, message: str, detail: str, at: datetime) -> EventRow:
    """Return the row of a message of the program."""
    mark, style = _LEVELS[level]
    text = f"{one_line(message)}  {one_line(detail)}".rstrip()
    return EventRow(at, "note", text, label=level, mark=mark, style=style)


def progress(event: WorkspaceProgress) -> str:
    """Return the progress of a workspace's plan in words."""
    parts = [f"{event.completed:g} of {event.total:g} done"]
    parts += [f"{event.in_progress:g} in progress"] if event.in_progress else []
    parts += [f"{event.blocked:g} blocked"] if event.blocked else []
    number = f" #{event.plan_number:g}" if event.plan_number else ""
    return f"{event.workspace}{number}  {', '.join(parts)}"


def lines(row: EventRow, columns: int, timezone: str = "") -> list[list[Piece]]:
    """Return the row wrapped at `columns`, each line in styled pieces; a quiet row is cut to one line."""
    time: Piece = (_DIM, f"{local(row.at, timezone):%H:%M:%S}  ")
    head: list[Piece] = [time, (row.style, f"{row.mark} ")]
    indent = _TIME_COLUMNS + _MARK_COLUMNS
    match row.kind:
        case "said":
            name: Piece = (f"{row.style} bold", f"{row.name}  ")
            return _hanging(head, [name, *pieces(row.text)], indent, columns)
        case "note":
            head.append((row.style, f"{row.label:<{_LABEL_COLUMNS}}"))
            return _hanging(head, [("", row.text)], indent + _LABEL_COLUMNS, columns)
        case "quiet":
            room = max(columns - indent - _LABEL_COLUMNS, _LEAST_COLUMNS)
            words = f"{row.name}  {row.text}" if row.text else row.name
            return [[(_DIM, f"{time[1]}{row.mark} {row.label:<{_LABEL_COLUMNS}}{fit(words, room)}")]]


def _hanging(head: list[Piece], body: list[Piece], indent: int, columns: int) -> list[list[Piece]]:
    first, *rest = wrapped(body, max(columns - indent, _LEAST_COLUMNS))
    return [[*head, *first], *([("", " " * indent), *line] for line in rest)]


def plain_lines(row: EventRow, timezone: str = "") -> list[str]:
    """Return the row without styles and unwrapped, for a file or a pipe."""
    return [plain(line) for line in lines(row, _endless(row), timezone)]


def _endless(row: EventRow) -> int:
    return width(row.text) + width(row.name) + 64


def _quiet(at: datetime, mark: str, label: str, name: str, text: str) -> EventRow:
    return EventRow(at, "quiet", one_line(text[:_QUIET_CHARS]), fit(one_line(name), _NAME_COLUMNS), label, mark)


def as_table(content: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines of two columns, the first as wide as its widest cell."""
    first = max((width(left) for left, _ in content), default=0)
    return [f"  {left}{' ' * (first - width(left))}  {right}".rstrip() for left, right in content]


INPUT_LINES = 3
"""The least height of the input box, in lines."""
DIM = "fg:ansibrightblack"
_MOST_SHOWN = 10
_OTHER_LINES = 5  # the rule, the box's top and bottom, the line that counts the rest, and one message
_TITLE = "SPACE HOST"
_KEYS = ("ENTER send", "ESC clear", "CTRL+C quit")
_FRAME_COLUMNS = 8  # two corners, two bars, and a space on either side of the title and of each bar


def most_input_lines(rows: int) -> int:
    """Return how many lines the box may grow to on a terminal with this many rows."""
    return max(INPUT_LINES, rows // 3)


def roster_lines(entries: Sequence[RosterEntry], columns: int, rows: int, now: float) -> list[list[Piece]]:
    """Return one line of `columns` for each member that has room, and one that counts the rest.

    `rows` is the height of the terminal, `now` is in monotonic seconds.
    """
    if not entries:
        return [[(DIM, "  Waiting for agents...")]]
    most = max(min(_MOST_SHOWN, rows - most_input_lines(rows) - _OTHER_LINES), 1)
    lines = [_entry_line(entry, columns, now) for entry in entries[:most]]
    more = len(entries) - most
    return [*lines, [(DIM, f"  +{more} more")]] if more > 0 else lines


def box_title(columns: int, version: str) -> str:
    """Return the title of the box with as many of its keys as have room."""
    title, keys = f"{_TITLE} v{version}", list(_KEYS)
    while keys and width(" · ".join([title, *keys])) + _FRAME_COLUMNS > columns:
        if title == _TITLE:
            keys.pop(0)
        title = _TITLE
    return " · ".join([title, *keys])


def _entry_line(entry: RosterEntry, columns: int, now: float) -> list[Piece]:
    doing = f" {_activity(entry, now)}".rstrip()
    version = fit(f"v{one_line(entry.version)}", columns // 3)
    room = max(columns - 5 - width(version), 1)
    name = fit(one_line(entry.name), max(room - width(doing), 1))
    doing = fit(doing, room - width(name))
    gap = " " * (room - width(name) - width(doing))
    style = f"fg:{colour(entry.name)}"
    return [("", "  "), (style, f"{symbol(entry.name)} "), (f"{style} bold", name), (DIM, f"{doing}{gap} {version}")]


def _activity(entry: RosterEntry, now: float) -> str:
    if entry.is_typing(now) or entry.state == "thinking":
        return "(thinking...)"
    if entry.state == "idle":
        return ""
    detail = one_line(entry.detail[:200])
    return f"({entry.state}: {detail})" if detail else f"({entry.state})"
