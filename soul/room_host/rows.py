"""Events of the room as rows of a terminal: messages in full, every other event as one dim line. Pure.

Control characters are removed from names and texts here, once, for every screen.
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
    """Returns the row of an event, or None for an event that only the panel shows."""
    if isinstance(event, Said):
        return said(event.name, event.content, at)
    parts = _quiet_parts(event)
    return _quiet(at, *parts) if parts else None


def _quiet_parts(event: SpaceEvent) -> tuple[str, str, str, str] | None:
    """Returns mark, label, name and text of a quiet row."""
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
    """Returns the row of a line of the record, or None; `at` replaces a time that cannot be read."""
    moment = parse_iso_or_none(entry.timestamp) or at
    if entry.type == "chat":
        return said(entry.agent_name, entry.content, moment)
    label = _RECORDED.get(entry.type)
    return _quiet(moment, "·", label, entry.agent_name, entry.content) if label else None


def said(name: str, content: str, at: datetime) -> EventRow:
    """Returns the row of a message, cut after `DRAWN_CHARS` characters."""
    who = fit(one_line(name), _NAME_COLUMNS)
    words = strip_control(content[:DRAWN_CHARS]).strip("\n")
    if len(content) > DRAWN_CHARS:
        words += f" … more was said: {len(content) - DRAWN_CHARS:,} characters"
    return EventRow(at, "said", words, who, mark=symbol(name), style=f"fg:{colour(name)}")


def note(level: NoteLevel, message: str, detail: str, at: datetime) -> EventRow:
    """Returns the row of a line of the program itself."""
    mark, style = _LEVELS[level]
    text = f"{one_line(message)}  {one_line(detail)}".rstrip()
    return EventRow(at, "note", text, label=level, mark=mark, style=style)


def progress(event: WorkspaceProgress) -> str:
    """Returns the progress of a workspace's plan in words."""
    parts = [f"{event.completed:g} of {event.total:g} done"]
    parts += [f"{event.in_progress:g} in progress"] if event.in_progress else []
    parts += [f"{event.blocked:g} blocked"] if event.blocked else []
    number = f" #{event.plan_number:g}" if event.plan_number else ""
    return f"{event.workspace}{number}  {', '.join(parts)}"


def lines(row: EventRow, columns: int, timezone: str = "") -> list[list[Piece]]:
    """Returns the row wrapped at `columns`, each line in styled pieces; a quiet row is cut to one line."""
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
    """Returns the row without styles and unwrapped, for a file or a pipe."""
    return [plain(line) for line in lines(row, _endless(row), timezone)]


def _endless(row: EventRow) -> int:
    return width(row.text) + width(row.name) + 64


def _quiet(at: datetime, mark: str, label: str, name: str, text: str) -> EventRow:
    return EventRow(at, "quiet", one_line(text[:_QUIET_CHARS]), fit(one_line(name), _NAME_COLUMNS), label, mark)


def as_table(content: Sequence[tuple[str, str]]) -> list[str]:
    """Returns lines of two columns, the first as wide as its widest cell."""
    first = max((width(left) for left, _ in content), default=0)
    return [f"  {left}{' ' * (first - width(left))}  {right}".rstrip() for left, right in content]
