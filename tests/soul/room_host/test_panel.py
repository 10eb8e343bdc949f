"""The panel below the talk: who is here, what they do, and the box to write in, at any width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import (
    ActionDone,
    Claimed,
    Event,
    Joined,
    Left,
    Presence,
    PresenceList,
    Said,
    StateChanged,
    Typing,
)
from soul.room_host.editor import Editor
from soul.room_host.markup import plain
from soul.room_host.panel import LEAST_COLUMNS, Panel, panel
from soul.room_host.roster import Roster
from soul.terminal.text import width

AT = "2026-01-05T12:00:00.000Z"


def roster(*events: Event) -> Roster:
    room = Roster()
    for event in events:
        room.follow(event, 100.0)
    return room


def joined(*names: str) -> list[Event]:
    return [Joined(name, f"id-{name}", "10.1.0") for name in names]


def shown(room: Roster, *, text: str = "", columns: int = 48, now: float = 100.0, rows: int = 100) -> list[str]:
    drawn = panel(room.entries, Editor().insert(text), columns, version="0.1.0", now=now, rows=rows)
    return [plain(line) for line in drawn.lines]


def test_an_empty_room_waits() -> None:
    lines = shown(roster())
    assert lines[0] == "  Waiting for agents..."
    assert lines[1] == "─" * 48


def test_each_agent_has_a_row_with_its_version_at_the_right() -> None:
    lines = shown(roster(*joined("marvin", "rebecca")))
    assert lines[0] == "  ◆ marvin                               v10.1.0"
    assert lines[1].startswith("  ○ rebecca")
    assert {width(line) for line in lines} == {48}


def test_typing_shows_for_ten_seconds_or_until_something_is_said() -> None:
    room = roster(*joined("marvin"), Typing("marvin", "m", AT))
    assert "(thinking...)" in shown(room, now=109.9)[0]
    assert "(thinking...)" not in shown(room, now=110.0)[0]
    room.follow(Said("marvin", "m", "So.", AT), 101.0)
    assert "(thinking...)" not in shown(room, now=101.0)[0]


def test_what_an_agent_does_stands_beside_its_name() -> None:
    room = roster(*joined("marvin"), StateChanged("marvin", "m", "acting", AT, detail="open_issue"))
    assert "marvin (acting: open_issue)" in shown(room)[0]
    room.follow(StateChanged("marvin", "m", "idle", AT), 101.0)
    assert "(" not in shown(room)[0]


def test_ten_are_shown_and_the_rest_is_counted() -> None:
    room = roster(*joined(*(f"agent{number}" for number in range(13))))
    lines = shown(room)
    assert "agent9" in lines[9]
    assert lines[10] == "  +3 more"
    low = shown(room, rows=12)
    assert "  +9 more" in low
    assert len(low) <= 12


def test_who_left_is_gone_with_their_claims() -> None:
    room = roster(*joined("marvin", "rebecca"), Claimed("marvin", "m", "review", "acme/site#1", AT))
    assert [claim.target for claim in room.claims(100.0)] == ["acme/site#1"]
    room.follow(Left("marvin", "m", AT), 101.0)
    assert room.names == ("rebecca",)
    assert room.claims(101.0) == ()


def test_a_claim_ends_when_it_is_done_or_after_a_minute() -> None:
    room = roster(Claimed("marvin", "m", "review", "a#1", AT), Claimed("marvin", "m", "review", "a#2", AT))
    room.follow(ActionDone("marvin", "m", "review", "a#1", success=True, timestamp=AT), 101.0)
    assert [claim.target for claim in room.claims(159.9)] == ["a#2"]
    assert room.claims(160.0) == ()


def test_the_list_of_who_is_present_is_the_truth() -> None:
    room = roster(*joined("ghost", "marvin"), Typing("marvin", "m", AT))
    room.follow(PresenceList((Presence("marvin", "m", "10.2.0", AT, AT),)), 101.0)
    assert room.names == ("marvin",)
    assert "(thinking...)" in shown(room)[0]
    assert shown(room)[0].endswith("v10.2.0")
    assert room.find("MARVIN") == room.entries[0]
    assert room.find("ghost") is None


def test_the_box_names_its_keys_and_our_version() -> None:
    lines = shown(roster(), columns=64)
    assert lines[2] == "╭─ [SPACE HOST] ──────── ENTER send · ESC clear · CTRL+C quit ─╮"
    assert lines[-1].endswith(" v0.1.0 ─╯")
    assert "CTRL+C quit" in shown(roster(), columns=LEAST_COLUMNS + 4)[2]


def test_a_long_text_shows_the_lines_around_the_cursor_and_says_when_more_are_below() -> None:
    text = "\n".join(f"line {number}" for number in range(6))
    assert ["line 3" in line for line in shown(roster(), text=text)[3:6]] == [True, False, False]
    editor = Editor().insert(text)
    for _ in range(4):
        editor = editor.up(40)
    drawn = panel((), editor, 48, version="0.1.0", now=0.0)
    box = [plain(line) for line in drawn.lines[3:6]]
    assert [line.strip("│ ") for line in box] == ["line 0", "line 1", "line 2 ..."]
    assert drawn.cursor[0] == 4


HOSTILE = "\x1b[2Jevil\x1b]0;taken\x07\u202e\nname"


def test_a_name_cannot_reach_the_terminal_or_break_the_row() -> None:
    lines = shown(
        roster(Joined(HOSTILE, "x", "\x1b[31m1\n0"), StateChanged(HOSTILE, "x", "acting", AT, detail=HOSTILE))
    )
    assert lines[0].startswith("  ")
    assert "evil name (acting: evil name)" in lines[0]
    assert lines[0].endswith("v1 0")
    assert not any(ord(char) < 32 for line in lines for char in line)


@pytest.mark.parametrize("columns", [1, 20, 33, 80, 200])
def test_no_line_is_wider_than_the_terminal_or_the_least_we_draw_for(columns: int) -> None:
    room = roster(*joined("marvin", "一" * 60, "x" * 100))
    room.follow(StateChanged("marvin", "m", "blocked", AT, detail="because " * 30), 100.0)
    assert {width(line) for line in shown(room, columns=columns, text="一二三 " * 50)[-6:]} == {
        max(columns, LEAST_COLUMNS)
    }
    assert all(width(line) <= max(columns, LEAST_COLUMNS) for line in shown(room, columns=columns))


@given(st.text(st.sampled_from("ab 一é\n\t🏽"), max_size=60), st.integers(LEAST_COLUMNS, 60))
def test_the_box_keeps_its_shape_whatever_is_in_it(text: str, columns: int) -> None:
    drawn: Panel = panel((), Editor().insert(text), columns, version="0.1.0", now=0.0)
    assert len(drawn.lines) == 7
    assert all(width(plain(line)) == columns for line in drawn.lines[2:])
    row, column = drawn.cursor
    assert 3 <= row < 6
    assert 2 <= column < columns - 1
