"""What happened in the room as rows of a terminal: words in full, everything else as one quiet line. Pure.

Names and words are cleaned here, once, for every way in which rows are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from adapters.space.hosting import LogLevel
from adapters.space.types import (
    ActionDone,
    Claimed,
    Event,
    Joined,
    Left,
    LogEntry,
    Reflected,
    Said,
    StateChanged,
    WorkspaceProgress,
)
from common.clock import local, parse_iso_or_none
from soul.room_host.avatars import colour, symbol
from soul.room_host.markup import Piece, pieces, plain, wrapped
from soul.terminal.text import fit, one_line, strip_control, width

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
"""How much of one message is shown; the record has all of it."""
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
class Row:
    """One happening. `label` is a single word for a quiet row or a note, `name` who did it, `text` the rest."""

    at: datetime
    kind: Kind
    text: str
    name: str = ""
    label: str = ""
    mark: str = ""
    style: str = ""


def row_of(event: Event, at: datetime) -> Row | None:
    """The row for an event, or None for what only the panel shows."""
    if isinstance(event, Said):
        return said(event.name, event.content, at)
    told = _told(event)
    return _quiet(at, *told) if told else None


def _told(event: Event) -> tuple[str, str, str, str] | None:
    """Mark, label, name and text of a quiet row."""
    told = None
    match event:
        case Joined():
            told = "→", "joined", event.name, f"v{event.version}"
        case Left():
            told = "←", "left", event.name, ""
        case Claimed():
            told = "▹", "claim", event.name, f"{event.action}  {event.target}"
        case ActionDone(success=True):
            told = "✓", "done", event.name, f"{event.action}  {event.link or event.target}"
        case ActionDone():
            told = "✗", "failed", event.name, f"{event.action}  {event.error or event.target}"
        case Reflected():
            told = "❖", "insight", event.name, event.summary
        case WorkspaceProgress():
            told = "▪", "plan", event.name, progress(event)
        case StateChanged(state="blocked"):
            told = "▨", "blocked", event.name, event.detail
    return told


def entry_row(entry: LogEntry, at: datetime) -> Row | None:
    """The row for a line of the record; `at` where its own time cannot be read."""
    moment = parse_iso_or_none(entry.timestamp) or at
    if entry.type == "chat":
        return said(entry.agent_name, entry.content, moment)
    label = _RECORDED.get(entry.type)
    return _quiet(moment, "·", label, entry.agent_name, entry.content) if label else None


def said(name: str, content: str, at: datetime) -> Row:
    """Words in the room."""
    who = fit(one_line(name), _NAME_COLUMNS)
    words = strip_control(content[:DRAWN_CHARS]).strip("\n")
    if len(content) > DRAWN_CHARS:
        words += f" … more was said: {len(content) - DRAWN_CHARS:,} characters"
    return Row(at, "said", words, who, mark=symbol(name), style=f"fg:{colour(name)}")


def note(level: NoteLevel, message: str, detail: str, at: datetime) -> Row:
    """A line of the program itself."""
    mark, style = _LEVELS[level]
    text = f"{one_line(message)}  {one_line(detail)}".rstrip()
    return Row(at, "note", text, label=level, mark=mark, style=style)


def progress(event: WorkspaceProgress) -> str:
    """How far a plan has come, in words."""
    parts = [f"{event.completed:g} of {event.total:g} done"]
    parts += [f"{event.in_progress:g} in progress"] if event.in_progress else []
    parts += [f"{event.blocked:g} blocked"] if event.blocked else []
    number = f" #{event.plan_number:g}" if event.plan_number else ""
    return f"{event.workspace}{number}  {', '.join(parts)}"


def lines(row: Row, columns: int, timezone: str = "") -> list[list[Piece]]:
    """The row at this width, each line in styled pieces; later lines of what is told in full hang below the first."""
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


def plain_lines(row: Row, timezone: str = "") -> list[str]:
    """The row without colours and without an end to its lines, for a file or a pipe."""
    return [plain(line) for line in lines(row, _endless(row), timezone)]


def _endless(row: Row) -> int:
    return width(row.text) + width(row.name) + 64


def _quiet(at: datetime, mark: str, label: str, name: str, text: str) -> Row:
    return Row(at, "quiet", one_line(text[:_QUIET_CHARS]), fit(one_line(name), _NAME_COLUMNS), label, mark)


def as_table(content: Sequence[tuple[str, str]]) -> list[str]:
    """Two columns, the first as wide as it must be."""
    first = max((width(left) for left, _ in content), default=0)
    return [f"  {left}{' ' * (first - width(left))}  {right}".rstrip() for left, right in content]
