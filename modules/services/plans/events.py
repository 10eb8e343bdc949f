"""What comments on a plan tell: what became of its tasks, and which plan somebody asked for. Pure.

Events stand in a marker that no reader sees, or in the words of peers. Whose comments count is the caller's choice: a
stranger's would count like any other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from adapters.github.types import Issue, Repo
from common.json_lines import json_object, split_lines
from common.text.strings import normalized_title
from modules.runtime.journal.types import Entry
from modules.services.plans.plan_text import TITLE_MARK
from modules.services.plans.types import Plan, Task

_MARK = re.compile(r"<!-- soul:wish=([0-9a-f]{16}) -->")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the post at `uri` asks for: its `text`, the `title` of a plan for it, and what else its thread says."""

    uri: str
    text: str
    title: str = ""
    said: tuple[str, ...] = ()


def wish_mark(uri: str) -> str:
    """Return the mark of a plan that is made for the post at `uri`."""
    return f"<!-- soul:wish={_digest(uri)} -->"


def wish_of(body: str) -> str:
    """Return what tells the wish for which a plan was made from all others, "" where the plan does not say."""
    found = _MARK.search(body)
    return found[1] if found else ""


def plan_for(wish: Wish, plans: Iterable[Issue]) -> Issue | None:
    """Return the plan of a wish among those that stand, the first that fits best; None where it has none.

    It is the one that is made for the post; else one whose link stands in the thread; else one that does not say for
    which post it is made, and has the same title.
    """
    standing = list(plans)
    made = (one for one in standing if wish_of(one.body) == _digest(wish.uri))
    named = (one for one in standing if any(tells_link(text, one.html_url) for text in (wish.text, *wish.said)))
    titled = (one for one in standing if not wish_of(one.body) and _has_title(one, wish.title))
    return next((one for found in (made, named, titled) for one in found), None)


def tells_link(text: str, url: str) -> bool:
    """Return whether the link stands in a text, and not just one that begins so."""
    return re.search(rf"{re.escape(url)}(?![\w/])", text) is not None


def _has_title(plan: Issue, title: str) -> bool:
    return bool(title) and normalized_title(title) == normalized_title(plan.title.replace(TITLE_MARK, "", 1))


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:16]


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


_IN_ROOM = "room:"


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """What asked for plan `number` of `repo`: a post or the owner, by its cause, or the `commitment` to a room.

    `is_openers`: who opened the plan tells its end in the same place.
    """

    repo: str
    number: int
    cause: str
    is_openers: bool

    @property
    def commitment(self) -> str:
        """The commitment to a room, "" for who asked elsewhere."""
        return self.cause.removeprefix(_IN_ROOM) if self.cause.startswith(_IN_ROOM) else ""


def asked_in_room(commitment_id: str) -> str:
    """Return the cause of who asked in a room, where a commitment was made of it."""
    return f"{_IN_ROOM}{commitment_id}"


def asked_entry(repo: Repo, plan: Issue, cause: str) -> Entry:
    """Return the entry that keeps that `cause` asked for what a plan does that stands already."""
    is_openers = wish_mark(cause) in plan.body or (cause.startswith(_IN_ROOM) and not wish_of(plan.body))
    data = {"act": PLAN_ASKED, "repo": repo.full_name, "number": plan.number, "cause": cause, "openers": is_openers}
    summary = f"What was asked for is what {repo.full_name}#{plan.number} is for, so no other plan is made"
    return Entry("life", PLAN_ENDS, summary, line=None, reason=plan.html_url, trigger_uri=cause, data=data)


def ask_of(entry: Entry) -> PlanAsk:
    """Return what an entry keeps. Raises `KeyError` for another entry."""
    told = entry.data
    return PlanAsk(told["repo"], told["number"], told["cause"], told["openers"])
