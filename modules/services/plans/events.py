"""What became of a task, as comments on its plan tell it: a marker that no reader sees, and the words of peers. Pure.

Whose comments count is the caller's choice: a stranger's would count like any other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from common.json_lines import json_object, split_lines
from modules.services.plans.types import Plan, Task

MAX_TASK_RETRIES = 3
"""After so many failures a task is left alone."""

TaskEventName = Literal["claimed", "opened", "failed", "blocked", "timeout", "reset", "completed", "abandoned"]

PLAN_ENDS, PLAN_DONE, PLAN_ASKED = "plan-ends", "plan-done", "plan-asked"
"""The loop and the `act` of the journal entries that tell that a plan is done, and who asked for one that stands."""

_NAMES: Mapping[object, TaskEventName] = {name: name for name in get_args(TaskEventName)}
_FAILURES = frozenset({"failed", "blocked", "timeout"})
_MARKER = re.compile(r"<!--[ \t]{0,8}task-event[ \t]{0,8}(\{[^{}<>\n]{1,200}\})[ \t]{0,8}-->")
_FAILED = re.compile(r"\b(?:failed|blocked)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """What became of the task of this number at its attempt, counted from 1.

    `about` is set for a question only: the `task_digest` of the task when it was asked. It is a `blocked` event that
    counts as no failure.
    """

    task: int
    event: TaskEventName
    attempt: int
    about: str = ""


def build_task_event_marker(number: int, event: TaskEventName, attempt: int, about: str = "") -> str:
    """Return the marker that stands in a comment about a task; readers do not see it."""
    told = {"task": number, "event": event, "attempt": attempt, **({"about": about} if about else {})}
    return f"<!-- task-event {json.dumps(told, separators=(',', ':'))} -->"


def task_digest(plan: Plan, task: Task) -> str:
    """Return a digest of what the plan says of a task; who has it and how far it is does not change the digest."""
    words = (plan.goal, plan.context, task.title, task.description, *task.files)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def parse_task_event_markers(body: str) -> list[TaskEvent]:
    """Return what the markers of a comment tell, in their order; what is quoted does not count."""
    events = (_event(found[1]) for line in _own_lines(body) for found in _MARKER.finditer(line))
    return [event for event in events if event]


def count_task_failures(comments: Iterable[str], number: int) -> int:
    """Return how many attempts at a task failed, from the bodies of the comments on its plan.

    Two comments with a marker of the same attempt count once. Where one says that the task is abandoned, it is at least
    `MAX_TASK_RETRIES`.
    """
    attempts: set[int] = set()
    told = 0
    abandoned = False
    for body in comments:
        if events := [event for event in parse_task_event_markers(body) if event.task == number]:
            attempts |= {event.attempt for event in events if event.event in _FAILURES and not event.about}
            abandoned |= any(event.event == "abandoned" for event in events)
        elif words := list(_words_on(body, number)):
            given_up = any(_is_given_up(line) for line in words)
            abandoned |= given_up
            told += not given_up and any(_FAILED.search(line) for line in words)
    count = len(attempts) + told
    return max(count, MAX_TASK_RETRIES) if abandoned else count


def _event(text: str) -> TaskEvent | None:
    match json_object(text):
        case {"task": int(task), "event": str(name), "attempt": int(attempt), **rest} if name in _NAMES and attempt > 0:
            about = rest.get("about")
            return TaskEvent(task, _NAMES[name], attempt, about if isinstance(about, str) else "")
    return None


def _own_lines(body: str) -> Iterable[str]:
    return (line for line in split_lines(body) if not line.lstrip().startswith(">"))


def _words_on(body: str, number: int) -> Iterable[str]:
    """What follows the name of the task in bold, line by line."""
    name = re.compile(rf"\*\*task[ \t]{{1,8}}{number}(?![0-9])", re.IGNORECASE)
    for line in _own_lines(body):
        if found := name.search(line):
            yield line[found.end() :]


def _is_given_up(line: str) -> bool:
    words = line.lower()
    return "has failed" in words and "times" in words and "will not be retried" in words
