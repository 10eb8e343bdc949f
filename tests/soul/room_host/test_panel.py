"""Proves the panel below the messages at any size: who is present, what each is doing, and the title of the box.

Proves what the host sees of each event, on a terminal and on a pipe. Drawing costs as much as the words are long, and
never holds up the room.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.roster import Roster
from adapters.space.types import (
    ActionDone,
    Claimed,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    Presence,
    PresenceList,
    Reflected,
    Said,
    SpaceEvent,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from common.clock import FakeClock
from soul.room_host.host import MOST_UNDRAWN, HostConsole
from soul.room_host.panel import (
    DRAWN_CHARS,
    EventRow,
    entry_row,
    lines,
    note,
    plain,
    plain_lines,
    roster_lines,
    row_of,
    said,
)
from soul.room_host.screen import OnLine
from soul.terminal.panel import width
from tests.patience import until

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


NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)

SHOWN: dict[str, tuple[SpaceEvent, str]] = {
    "said": (Said("marvin", "m", "**So** it *is*.", AT), "12:00:00  ◆ marvin  So it is."),
    "joined": (Joined("marvin", "m", "10.1.0"), "12:00:00  → joined  marvin  v10.1.0"),
    "left": (Left("marvin", "m", AT), "12:00:00  ← left    marvin"),
    "claim": (Claimed("marvin", "m", "review", "a/b#1", AT), "12:00:00  ▹ claim   marvin  review a/b#1"),
    "done": (
        ActionDone("marvin", "m", "review", "a/b#1", success=True, timestamp=AT, link="https://x.example/1"),
        "12:00:00  ✓ done    marvin  review https://x.example/1",
    ),
    "failed": (
        ActionDone("marvin", "m", "review", "a/b#1", success=False, timestamp=AT, error="no such\nissue"),
        "12:00:00  ✗ failed  marvin  review no such issue",
    ),
    "reflected": (Reflected("marvin", "m", "I learned.", AT), "12:00:00  ❖ insight marvin  I learned."),
    "plan": (
        WorkspaceProgress("marvin", "m", "site", 3, 7, 4, 1, 2, AT),
        "12:00:00  ▪ plan    marvin  site #3 4 of 7 done, 2 in progress, 1 blocked",
    ),
    "blocked": (StateChanged("marvin", "m", "blocked", AT, detail="no key"), "12:00:00  ▨ blocked marvin  no key"),
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_happening_is_one_row(case: str) -> None:
    event, seen = SHOWN[case]
    row = row_of(event, NOON)
    assert row
    assert plain_lines(row, "UTC") == [seen]


@pytest.mark.parametrize(
    "event",
    [
        Typing("marvin", "m", AT),
        PresenceList(()),
        StateChanged("marvin", "m", "thinking", AT),
        Identified("marvin", "m", IdentitySummary(), AT),
    ],
    ids=["typing", "presence", "thinking", "identity"],
)
def test_what_the_panel_shows_is_no_row(event: SpaceEvent) -> None:
    assert row_of(event, NOON) is None


def test_a_quiet_row_stays_one_line_at_any_width() -> None:
    row = row_of(Reflected("marvin", "m", "word " * 500, AT), NOON)
    assert row
    for columns in (1, 40, 120):
        drawn = lines(row, columns, "UTC")
        assert len(drawn) == 1
        assert width(plain(drawn[0])) <= max(columns, 36)


def test_the_record_reads_like_the_talk() -> None:
    chat = entry_row(LogEntry(AT, "host", "host-1", "chat", "Good **evening**"), NOON)
    claim = entry_row(LogEntry("nonsense", "marvin", "m", "claim", "review:a#1"), NOON)
    assert chat
    assert claim
    assert plain_lines(chat, "UTC") == ["12:00:00  • host  Good evening"]
    assert plain_lines(claim, "UTC") == ["12:00:00  · claim   marvin  review:a#1"]
    assert entry_row(LogEntry(AT, "marvin", "m", "state", "idle"), NOON) is None


HOSTILE_TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]0;m\x07\\\x9b\u202e\r\n")), max_size=40)


@given(HOSTILE_TEXTS, HOSTILE_TEXTS, HOSTILE_TEXTS)
def test_no_event_brings_a_control_character_to_the_terminal(name: str, one: str, two: str) -> None:
    events: list[SpaceEvent] = [
        Said(name, "x", one, AT),
        Joined(name, "x", one),
        Claimed(name, "x", one, two, AT),
        ActionDone(name, "x", one, two, success=False, timestamp=AT, error=one),
        Reflected(name, "x", one, AT),
        StateChanged(name, "x", "blocked", AT, detail=one),
        WorkspaceProgress(name, "x", one, 1, 2, 1, 0, 0, AT),
    ]
    drawn = [lines(row, 60, "UTC") for event in events if (row := row_of(event, NOON))]
    drawn.append(lines(note("warn", "A line", f"{name} {one}", NOON), 60, "UTC"))
    text = "".join(part for row in drawn for line in row for _, part in line)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in text)


class SlowScreen:
    """A screen that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.is_behind = False

    def show(self, row: EventRow) -> None:
        self.shown.append(row.text)

    def print(self, lines: list[str]) -> None:
        self.shown += lines

    def refresh(self) -> None:
        """Do nothing, since nothing stands below."""

    async def run(self, on_line: OnLine, commands: Sequence[str] = ()) -> None:
        """Do nothing, since nobody types."""


def test_of_a_long_chat_the_beginning_is_drawn_and_how_much_more_was_said() -> None:
    text = plain_lines(said("eve", "w" * 5_000, NOON))[0]
    assert text.endswith("w … more was said: 1,000 characters")
    assert text.count("w") == DRAWN_CHARS + 1
    assert plain_lines(said("eve", "w" * DRAWN_CHARS, NOON))[0].endswith("w")


async def test_nothing_is_drawn_in_the_turn_in_which_it_happened_and_then_one_thing_a_turn() -> None:
    screen = SlowScreen()
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(3):
        console.happened(Said("eve", "e", f"word {number}", AT))
    console.note("info", "a note")
    assert screen.shown == []
    await asyncio.sleep(0)
    assert screen.shown == ["word 0"]
    await asyncio.sleep(0)
    assert screen.shown == ["word 0", "word 1"]
    console.draw_all()
    assert screen.shown == ["word 0", "word 1", "word 2", "a note"]


async def test_what_comes_faster_than_it_can_be_drawn_is_counted_not_piled_up() -> None:
    screen = SlowScreen()
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(MOST_UNDRAWN + 7):
        console.happened(Said("eve", "e", f"word {number}", AT))
    console.draw_all()
    assert screen.shown[0].startswith("7 lines came too fast to be shown")
    assert len(screen.shown) == MOST_UNDRAWN + 1
    assert screen.shown[-1] == f"word {MOST_UNDRAWN + 6}"


async def test_nothing_is_drawn_while_the_screen_is_behind_and_what_is_left_out_is_counted_when_it_is_not() -> None:
    screen = SlowScreen()
    screen.is_behind = True
    console = HostConsole(screen, Roster(), FakeClock())
    for number in range(MOST_UNDRAWN + 7):
        console.happened(Said("eve", "e", f"word {number}", AT))
        await asyncio.sleep(0)
    assert screen.shown == []
    screen.is_behind = False
    await until(lambda: len(screen.shown) > MOST_UNDRAWN)
    assert screen.shown[0].startswith("7 lines came too fast to be shown")
    assert screen.shown[-1] == f"word {MOST_UNDRAWN + 6}"
