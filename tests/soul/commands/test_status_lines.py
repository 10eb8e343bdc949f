"""Proves that the status lines that the owner reads agree with the status file."""

from typing import Any

import pytest

from soul.commands.status import status_lines

_CALM: dict[str, Any] = {
    "awake": False,
    "handle": "rowan.test",
    "updatedAt": "2026-01-05T12:00:00.000Z",
    "counts": {"posts": 1},
    "standing": {"reasons": []},
    "drafts": [],
}


def test_a_pause_stands_in_the_first_line_instead_of_idle() -> None:
    standing = {"paused": True, "safeMode": False, "reasons": ["paused by the owner: off to bed"]}
    awake = {"awake": True, "pid": 7, "mode": "idle", "loops": [], "standing": standing}
    first = status_lines("rowan", _CALM | awake)[0]
    assert first == (
        "rowan (@rowan.test) is awake; paused by the owner: off to bed: nothing public leaves until `soul resume`"
    )


def test_who_backs_off_is_not_called_idle() -> None:
    troubles = [
        {"service": "Bluesky", "what": "Bluesky asked us to wait", "until": "2026-01-05T12:01:28.000Z"},
        {"service": "model", "what": "model fails again and again", "until": None},
    ]
    awake = {"awake": True, "pid": 7, "mode": "idle", "loops": [], "troubles": troubles}
    first = status_lines("rowan", _CALM | awake, "UTC")[0]
    said = "Bluesky asked us to wait, until 2026-01-05 12:01; model fails again and again"
    assert first == f"rowan (@rowan.test) is awake; {said}"
    assert "Bluesky" not in status_lines("rowan", _CALM | awake | {"awake": False}, "UTC")[0]


_FULL: dict[str, Any] = {
    "mode": "idle",
    "pid": 7,
    "waits": {"owner_messages": 2},
    "room": {"status": "joined", "url": "ws://127.0.0.1:7777", "peers": ["maren"]},
    "commitments": [{"what": "A list of tides", "type": "create_issue", "status": "pending"}],
    "cachedShare": 0.5,
    "promptNotes": ["MEMORY.md was cut"],
    "lastDecision": {"at": "2026-01-05T12:00:00.000Z", "summary": "Replying to @kit.test", "reason": "a question"},
    "loops": [
        {"name": "outbox", "nextAt": None, "lastOutcome": "0 sent"},
        {"name": "sleep", "nextAt": None, "lastOutcome": "it is in a room"},
    ],
}


@pytest.mark.parametrize("awake", [True, False])
def test_it_is_a_headline_and_at_most_five_lines_and_the_loops_come_when_asked_for(*, awake: bool) -> None:
    status = _CALM | _FULL | {"awake": awake, "drafts": [{}]}
    lines, all_lines = status_lines("rowan", status, "UTC"), status_lines("rowan", status, "UTC", with_loops=True)
    assert len(lines) <= 6, lines
    assert ("awake because it is in a room" in lines[1]) is awake
    assert all_lines[: len(lines)] == lines
    assert not any("sends what waits" in line for line in lines)
    assert any("sends what waits" in line for line in all_lines) is awake


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (("Stopped; nothing accepted is lost", ""), ("ended at 2026-01-05 13:00: Stopped", "`soul run` goes on")),
        (("Login refused", "Make a new app password."), ("Login refused", "Make a new app password. Then `soul run`")),
    ],
)
def test_where_nobody_is_awake_it_says_why_and_how_to_go_on(ended: tuple[str, str], said: tuple[str, str]) -> None:
    end = {"at": "2026-01-05T13:00:00.000Z", "why": ended[0], "remedy": ended[1]}
    told = "\n".join(status_lines("rowan", _CALM | {"ended": end}, "UTC"))
    assert all(words in told for words in said), told
    refused = [{"error": "SOUL.md is missing", "remedy": "Restore it."}]
    told = "\n".join(status_lines("rowan", _CALM | {"ended": end, "refused": refused}, "UTC"))
    assert "goes on" not in told
    assert "✗ SOUL.md is missing\n    → Restore it." in told
    assert "ended" not in "\n".join(status_lines("rowan", _CALM | _FULL | {"awake": True}, "UTC"))
