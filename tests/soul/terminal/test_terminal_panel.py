"""The panel below the owner's line at any size: timers, budgets, their colours, and nothing that a terminal obeys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from common.clock import iso
from soul.terminal.panel import MOST_LINES, hint_line, panel_lines, width

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def in_s(seconds: float) -> str:
    return iso(NOW + timedelta(seconds=seconds))


def status(**changed: Any) -> dict[str, Any]:
    loops = [("awareness", 32), ("heartbeat", 5), ("messages", 15), ("engagement", 540)]
    return {
        "loops": [{"name": name, "running": False, "nextAt": in_s(left)} for name, left in loops],
        "nextExpressionAt": in_s(7500),
        "nextExpressionSource": "values",
        "budget": {"remaining": 2989, "limit": 3000, "resetAt": int(NOW.timestamp()) + 240},
        "github": {"remaining": 400, "limit": 5000, "resetAt": int(NOW.timestamp()) + 2400},
        "modelBudget": {"tokens": {"used": 1_500_000, "cap": 2_000_000}, "resetsAt": in_s(21_600)},
        **changed,
    }


def shown(of: dict[str, Any], *, columns: int = 120, rows: int = 40) -> list[str]:
    return ["".join(text for _, text in line) for line in panel_lines(of, NOW, columns, rows)]


def styles(of: dict[str, Any]) -> dict[str, str]:
    return {text: style for line in panel_lines(of, NOW, 200, 40) for style, text in line}


def test_four_timers_stand_above_the_budgets() -> None:
    assert shown(status()) == [
        "Awareness in 32 s  Expression in 2 h 5 min (values)  Messages in 15 s  Own posts in 9 min",
        "Bluesky 2,989/3,000 (4 min)  GitHub 400/5,000 (40 min)  Tokens 500,000/2,000,000 (6 h)",
    ]


def test_what_is_due_or_runs_says_now_and_what_is_not_known_is_two_dashes() -> None:
    loops = [{"name": "awareness", "running": True, "nextAt": in_s(9)}]
    unknown = {"remaining": 3000, "limit": 3000, "resetAt": 0}
    of = status(loops=loops, nextExpressionAt=None, nextExpressionSource="", budget=unknown, github=None)
    assert shown(of) == ["Awareness now  Expression --", "Bluesky --  Tokens 500,000/2,000,000 (6 h)"]
    assert shown(status(nextExpressionAt=in_s(-5)))[0].startswith("Awareness in 32 s  Expression now (values)")


def test_a_budget_is_green_then_yellow_then_red_and_what_is_near_is_yellow() -> None:
    look = styles(status())
    assert look["2,989/3,000"] == "fg:ansigreen"
    assert look["500,000/2,000,000"] == "fg:ansiyellow"
    assert look["400/5,000"] == "fg:ansired"
    assert look["in 32 s"] == "fg:ansiyellow"
    assert look["in 9 min"] == ""


def test_there_is_nothing_before_the_first_status_and_on_a_screen_of_three_rows() -> None:
    assert shown({}) == []
    assert [len(shown(status(), columns=40, rows=rows)) for rows in (1, 2, 3, 4, 7, 8, 12, 60)] == [
        0, 0, 0, 1, 1, 2, 3, 3,
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [1, 2, 7, 20, 33, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_there_are_three_at_most(columns: int) -> None:
    hostile = "\x1b[2Jevil\x1b]0;taken\x07\u202e\n一一" * 40
    lines = shown(status(nextExpressionSource=hostile), columns=columns)
    assert 1 <= len(lines) <= MOST_LINES
    assert max(map(width, lines)) <= columns
    assert all(line.isprintable() for line in lines)


def test_a_narrow_terminal_keeps_the_timers_and_loses_the_last_of_the_budgets() -> None:
    assert shown(status(), columns=50) == [
        "Awareness in 32 s",
        "Expression in 2 h 5 min (values)  Messages in 15 s",
        "Own posts in 9 min  Bluesky 2,989/3,000 (4 min)",
    ]


def test_a_narrow_terminal_shows_fewer_hints_but_always_whole_ones() -> None:
    assert hint_line("Rowan", 60) == "Enter: send to Rowan · /help: commands · Ctrl-C: stop"
    assert hint_line("Rowan of the long ridge roof", 60) == "/help: commands · Ctrl-C: stop"
    assert hint_line("Rowan", 20) == "Ctrl-C: stop"
    assert hint_line("Rowan", 5) == ""
