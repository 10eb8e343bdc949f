"""Which of our comments are deleted because we said the same before."""

from __future__ import annotations

import pytest

from adapters.github.types import Comment
from modules.lives.workspaces.plan_upkeep import duplicate_comment_ids
from modules.services.plans.events import build_task_event_marker

MORNING, NOON, NEXT_DAY = "2026-01-05T08:00:00Z", "2026-01-05T12:00:00Z", "2026-01-06T08:00:01Z"


def said(number: int, body: str, at: str = NOON, author: str = "rowan") -> Comment:
    return Comment(number, body, author, "", at, at)


LONG = "The same long beginning. " * 20


@pytest.mark.parametrize(
    ("first", "second", "is_repeated"),
    [
        ("On it.", "on  it.", True),
        ("On it.\n\n<!-- soul:intent=ab12 -->", "On it.\n\n<!-- soul:intent=cd34 -->", True),
        ("Thanks @kit", "Thanks @wren", False),
        (f"{LONG}One.", f"{LONG}Two.", False),
        (
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            f"Failed. {build_task_event_marker(1, 'failed', 2)}",
            False,
        ),
        (
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            f"Failed. {build_task_event_marker(1, 'failed', 1)}",
            True,
        ),
        ('Mine. <!-- task-claim {"task":1} -->', 'Mine. <!-- task-claim {"task":1} -->', False),
    ],
)
def test_only_what_says_the_same_is_repeated(first: str, second: str, *, is_repeated: bool) -> None:
    found = duplicate_comment_ids([said(2, second), said(1, first, MORNING)], "Rowan")
    assert found == ([2] if is_repeated else [])


def test_the_oldest_stays_and_after_a_day_it_may_be_said_again() -> None:
    comments = [said(1, "On it.", MORNING), said(2, "On it."), said(3, "On it."), said(4, "On it.", NEXT_DAY)]
    assert duplicate_comment_ids(comments, "rowan") == [2, 3]


def test_what_others_say_twice_is_theirs() -> None:
    assert duplicate_comment_ids([said(1, "On it.", author="kit"), said(2, "On it.", author="kit")], "rowan") == []
