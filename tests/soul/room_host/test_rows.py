"""What the host sees of each happening, on a terminal and on a pipe."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import (
    ActionDone,
    Claimed,
    Identified,
    IdentitySummary,
    Joined,
    Left,
    LogEntry,
    PresenceList,
    Reflected,
    Said,
    SpaceEvent,
    StateChanged,
    Typing,
    WorkspaceProgress,
)
from soul.room_host.panel import entry_row, lines, note, plain, plain_lines, row_of
from soul.terminal.panel import width

AT = "2026-01-05T12:00:00.000Z"
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


HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("\x1b[]0;m\x07\\\x9b\u202e\r\n")), max_size=40)


@given(HOSTILE, HOSTILE, HOSTILE)
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
