"""The lines of the panel below the talk: who is present and what each is doing, and the title of the box. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from soul.room_host.avatars import colour, symbol
from soul.room_host.markup import Piece
from soul.room_host.roster import RosterEntry
from soul.terminal.text import fit, one_line, width

INPUT_LINES = 3
"""The least height of the box in which the host writes, in lines."""
DIM = "fg:ansibrightblack"
_MOST_SHOWN = 10
_OTHER_LINES = 5  # the rule, the box's top and bottom, the line that counts the rest, and one line of the talk
_TITLE = "SPACE HOST"
_KEYS = ("ENTER send", "ESC clear", "CTRL+C quit")
_FRAME_COLUMNS = 8  # two corners, two bars, and a space on either side of the title and of each bar


def most_input_lines(rows: int) -> int:
    """Returns how many lines the box may grow to on a terminal with this many rows."""
    return max(INPUT_LINES, rows // 3)


def roster_lines(entries: Sequence[RosterEntry], columns: int, rows: int, now: float) -> list[list[Piece]]:
    """Returns one line of `columns` for each member that has room, and one that counts the rest.

    `rows` is the height of the terminal, `now` is in monotonic seconds.
    """
    if not entries:
        return [[(DIM, "  Waiting for agents...")]]
    most = max(min(_MOST_SHOWN, rows - most_input_lines(rows) - _OTHER_LINES), 1)
    lines = [_entry_line(entry, columns, now) for entry in entries[:most]]
    more = len(entries) - most
    return [*lines, [(DIM, f"  +{more} more")]] if more > 0 else lines


def box_title(columns: int, version: str) -> str:
    """Returns the title of the box with as many of its keys as have room."""
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
