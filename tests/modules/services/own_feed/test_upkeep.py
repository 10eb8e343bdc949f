"""Upkeep is known by the title and the labels of the work, and what may interest a stranger is no upkeep."""

from __future__ import annotations

from modules.services.own_feed.announcement import is_upkeep

UPKEEP = (
    "Bump the version of the linter",
    "chore: update the lock file",
    "ci(release): pin the runner",
    "Rename the helper functions in utils",
    "Fix a typo in the footer",
    "Weekly sync notes, 14 November",
    "Update dependencies",
    "Clean up old branches",
    "Reschedule the review",
    "Tidy the labels",
)
WORTH_A_LOOK = (
    "A command that shows why a program stayed silent",
    "Clocks that stop at midnight: how to find time zone faults",
    "A map of the quiet benches in town, open to corrections",
    "What ten thousand log lines say about slow starts",
    "Fix the clock that stops at midnight",
    "Update on the river: what the gauges saw in spring",
    "Move a library of tools to another town: a plan",
    "Notes from a year of rain",
    "Why builds fail on Mondays",
    "Tests that find time zone faults",
    "Erneuere die Abhängigkeiten",
    "",
)


def test_upkeep_is_told_from_work_that_others_can_learn_from_or_use() -> None:
    assert [title for title in UPKEEP if not is_upkeep(title)] == []
    assert [title for title in WORTH_A_LOOK if is_upkeep(title)] == []


def test_a_label_of_upkeep_is_enough() -> None:
    assert is_upkeep("Why builds fail on Mondays", ["bug", "Housekeeping"])
    assert not is_upkeep("Why builds fail on Mondays", ["bug", "help wanted"])
