"""The lines of the panel below the talk at any size: who is present, what each is doing, and the title of the box."""

from __future__ import annotations

import pytest

from adapters.space.types import (
    ActionDone,
    Claimed,
    Joined,
    Left,
    Presence,
    PresenceList,
    Said,
    SpaceEvent,
    StateChanged,
    Typing,
)
from soul.room_host.panel import plain, roster_lines
from soul.room_host.roster import Roster
from soul.terminal.panel import width

AT = "2026-01-05T12:00:00.000Z"


def roster(*events: SpaceEvent) -> Roster:
    room = Roster()
    for event in events:
        room.follow(event, 100.0)
    return room


def joined(*names: str) -> list[SpaceEvent]:
    return [Joined(name, f"id-{name}", "10.1.0") for name in names]


def shown(room: Roster, *, columns: int = 48, now: float = 100.0, rows: int = 100) -> list[str]:
    return [plain(line) for line in roster_lines(room.entries, columns, rows, now)]


def test_an_empty_room_waits() -> None:
    assert shown(roster()) == ["  Waiting for agents..."]


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
    assert len(shown(room, rows=24)) == 11
    low = shown(room, rows=12)
    assert low[-1] == "  +10 more"
    assert len(low) == 4


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


def test_of_claims_five_hundred_are_kept_and_one_that_is_renewed_outlives_older_ones() -> None:
    room = roster(*(Claimed("marvin", "m", "review", f"a#{number}", AT) for number in range(500)))
    room.follow(Claimed("marvin", "m", "review", "a#0", AT), 101.0)
    room.follow(Claimed("marvin", "m", "review", "a#500", AT), 101.0)
    targets = {claim.target for claim in room.claims(102.0)}
    assert len(targets) == 500
    assert targets >= {"a#0", "a#500"}
    assert "a#1" not in targets


def test_the_list_of_who_is_present_is_the_truth() -> None:
    room = roster(*joined("ghost", "marvin"), Typing("marvin", "m", AT))
    room.follow(PresenceList((Presence("marvin", "m", "10.2.0", AT, AT),)), 101.0)
    assert room.names == ("marvin",)
    assert "(thinking...)" in shown(room)[0]
    assert shown(room)[0].endswith("v10.2.0")
    assert room.find("MARVIN") == room.entries[0]
    assert room.find("ghost") is None


HOSTILE = "\x1b[2Jevil\x1b]0;taken\x07\u202e\nname"


def test_a_name_cannot_reach_the_terminal_or_break_the_row() -> None:
    lines = shown(
        roster(Joined(HOSTILE, "x", "\x1b[31m1\n0"), StateChanged(HOSTILE, "x", "acting", AT, detail=HOSTILE))
    )
    assert lines[0].startswith("  ")
    assert "evil name (acting: evil name)" in lines[0]
    assert lines[0].endswith("v1 0")
    assert not any(ord(char) < 32 for line in lines for char in line)


@pytest.mark.parametrize("columns", [20, 33, 80, 200])
def test_each_line_of_a_member_is_as_wide_as_the_terminal(columns: int) -> None:
    room = roster(*joined("marvin", "一" * 60, "x" * 100))
    room.follow(StateChanged("marvin", "m", "blocked", AT, detail="because " * 30), 100.0)
    assert {width(line) for line in shown(room, columns=columns)} == {columns}


def test_a_terminal_without_any_room_is_no_error() -> None:
    assert len(shown(roster(*joined("marvin", "rebecca")), columns=1, rows=1)) == 2
