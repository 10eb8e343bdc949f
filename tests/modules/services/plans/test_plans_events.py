"""What became of a task is read from markers and from the words of peers, and each failure counts once."""

from __future__ import annotations

import pytest

from modules.services.plans.events import (
    TaskEvent,
    TaskEventName,
    build_task_event_marker,
    count_task_failures,
    parse_task_event_markers,
)


def test_a_marker_has_the_form_that_peers_read() -> None:
    marker = build_task_event_marker(3, "timeout", 2)
    assert marker == '<!-- task-event {"task":3,"event":"timeout","attempt":2} -->'
    assert parse_task_event_markers(f"No news for 30 minutes.\n\n{marker}") == [TaskEvent(3, "timeout", 2)]


@pytest.mark.parametrize(
    "body",
    [
        '<!-- task-event {"task":3,"event":"won","attempt":1} -->',
        '<!-- task-event {"task":"3","event":"failed","attempt":1} -->',
        '<!-- task-event {"task":3,"event":"failed","attempt":0} -->',
        '<!-- task-event {"task":3 -->',
        '> <!-- task-event {"task":3,"event":"failed","attempt":1} -->',
    ],
)
def test_what_is_no_marker(body: str) -> None:
    assert parse_task_event_markers(body) == []


def _marked(event: TaskEventName, attempt: int, number: int = 1) -> str:
    return f"**Task {number}** Failed\n{build_task_event_marker(number, event, attempt)}"


@pytest.mark.parametrize(
    ("comments", "failures"),
    [
        ([], 0),
        (["**Task 1** Failed: no tests"], 1),
        (["**Task 1**\nFailed"], 0),
        (["**Task 12** Failed", "Task 1 Failed", "> **Task 1** Failed"], 0),
        (["**Task 1** Failed", "**Task 1** Failed", "**Task 1** claimed"], 2),
        ([_marked("failed", 1), _marked("failed", 1), _marked("blocked", 2), _marked("timeout", 3)], 3),
        ([_marked("claimed", 1), _marked("reset", 1), _marked("completed", 1)], 0),
        ([_marked("failed", 1, 2), _marked("abandoned", 3, 2)], 0),
        ([_marked("abandoned", 3)], 3),
        (["**Task 1** has failed 3 times and will not be retried."], 3),
    ],
)
def test_failures_of_a_task_count_over_all_comments(comments: list[str], failures: int) -> None:
    assert count_task_failures(comments, 1) == failures
