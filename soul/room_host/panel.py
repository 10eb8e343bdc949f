"""The panel below the talk: who is here, what each is doing, and the box in which the host writes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soul.room_host.avatars import colour, symbol
from soul.room_host.editor import Editor
from soul.room_host.markup import Piece
from soul.room_host.roster import RosterEntry
from soul.terminal.text import TAB, fit, one_line, width

MOST_SHOWN = 10
INPUT_LINES = 3
_OTHER_LINES = 5  # a rule, the box's top and bottom, the line that counts the rest, and one of the talk
LEAST_COLUMNS = 30
_DIM = "fg:ansibrightblack"
_TITLE = "[SPACE HOST]"
_KEYS = ("ENTER send", "ESC clear", "CTRL+C quit")
_SIDE = 2  # a border and a space


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel's lines in styled pieces, and the cursor's line and column in it."""

    lines: tuple[tuple[Piece, ...], ...]
    cursor: tuple[int, int]


def room_for_input(columns: int) -> int:
    """How many columns a line of the box has; one more is left for the cursor at its end."""
    return max(columns, LEAST_COLUMNS) - 2 * _SIDE - 1


def panel(
    entries: Sequence[RosterEntry], editor: Editor, columns: int, *, version: str, now: float, rows: int = 100
) -> Panel:
    """The panel at this width, on a terminal with so many rows; `now` in monotonic seconds."""
    columns = max(columns, LEAST_COLUMNS)
    most = max(min(MOST_SHOWN, rows - INPUT_LINES - _OTHER_LINES), 1)
    above = [*_entry_lines(entries, most, columns, now), ((_DIM, "─" * columns),), _top(columns)]
    inside, (row, column) = _input_lines(editor, columns)
    bottom = ((_DIM, _ruled("", f" v{version} ", columns, "╰╯")),)
    return Panel((*above, *inside, bottom), (len(above) + row, _SIDE + column))


def _entry_lines(entries: Sequence[RosterEntry], most: int, columns: int, now: float) -> list[tuple[Piece, ...]]:
    if not entries:
        return [((_DIM, "  Waiting for agents..."),)]
    lines = [_entry_line(entry, columns, now) for entry in entries[:most]]
    more = len(entries) - most
    return [*lines, ((_DIM, f"  +{more} more"),)] if more > 0 else lines


def _entry_line(entry: RosterEntry, columns: int, now: float) -> tuple[Piece, ...]:
    doing = f" {_doing(entry, now)}".rstrip()
    version = fit(f"v{one_line(entry.version)}", columns // 3)
    room = columns - 5 - width(version)
    name = fit(one_line(entry.name), max(room - width(doing), 1))
    doing = fit(doing, room - width(name))
    gap = " " * (room - width(name) - width(doing))
    style = f"fg:{colour(entry.name)}"
    return ("", "  "), (style, f"{symbol(entry.name)} "), (f"{style} bold", name), (_DIM, f"{doing}{gap} {version}")


def _doing(entry: RosterEntry, now: float) -> str:
    if entry.is_typing(now) or entry.state == "thinking":
        return "(thinking...)"
    if entry.state == "idle":
        return ""
    detail = one_line(entry.detail[:200])
    return f"({entry.state}: {detail})" if detail else f"({entry.state})"


def _top(columns: int) -> tuple[Piece, ...]:
    keys = list(_KEYS)
    while keys and width(_TITLE) + width(" · ".join(keys)) + 8 > columns:
        keys.pop(0)
    return ((_DIM, _ruled(f" {_TITLE} ", f" {' · '.join(keys)} " if keys else "", columns, "╭╮")),)


def _ruled(left: str, right: str, columns: int, corners: str) -> str:
    return f"{corners[0]}─{left}{'─' * (columns - 4 - width(left) - width(right))}{right}─{corners[1]}"


def _input_lines(editor: Editor, columns: int) -> tuple[list[tuple[Piece, ...]], tuple[int, int]]:
    """Three lines of what is written, those around the cursor."""
    room = room_for_input(columns)
    row, column = editor.cursor(room)
    places = editor.lines(room)
    first = max(0, min(row - INPUT_LINES + 1, len(places) - INPUT_LINES))
    shown = [editor.text[start:end].replace("\t", TAB) for start, end in places[first : first + INPUT_LINES]]
    shown += [""] * (INPUT_LINES - len(shown))
    more_below = first + INPUT_LINES < len(places)
    lines: list[tuple[Piece, ...]] = []
    for place, line in enumerate(shown):
        more = more_below and place == INPUT_LINES - 1
        text = f"{fit(line, room - 4)} ..." if more and width(line) > room - 4 else f"{line} ..." if more else line
        lines.append(((_DIM, "│ "), ("", text + " " * (room + 1 - width(text))), (_DIM, " │")))
    return lines, (row - first, column)
