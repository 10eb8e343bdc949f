"""Reads and writes the comments on a plan: what became of its tasks, and which plan somebody asked for. Pure.

Events are in an invisible marker, or in the words of peers. The caller chooses whose comments count: those of a
stranger are read like any other.
"""

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
    """The request in the post at `uri`: its `text`, the `title` of a plan for it, and the other texts of its thread."""

    uri: str
    text: str
    title: str = ""
    said: tuple[str, ...] = ()


def wish_mark(uri: str) -> str:
    """Return the mark of a plan that is made for the post at `uri`."""
    return f"<!-- soul:wish={_digest(uri)} -->"


def wish_of(body: str) -> str:
    """Return the digest of the wish for which a plan was made, "" if the plan has no such mark."""
    found = _MARK.search(body)
    return found[1] if found else ""


def plan_for(wish: Wish, plans: Iterable[Issue]) -> Issue | None:
    """Return the plan for a wish among the given ones, by the first criterion that matches; None if there is none.

    The criteria: its mark names the post; its link is in the thread; it has the same title, and is open
    or has no mark.
    """
    standing = list(plans)
    made = (one for one in standing if wish_of(one.body) == _digest(wish.uri))
    named = (one for one in standing if any(tells_link(text, one.html_url) for text in (wish.text, *wish.said)))
    alike = (one for one in standing if one.state == "open" or not wish_of(one.body))
    titled = (one for one in alike if _has_title(one, wish.title))
    return next((one for found in (made, named, titled) for one in found), None)


def tells_link(text: str, url: str) -> bool:
    """Return whether a text contains the link itself, not only a longer link that begins with it."""
    return re.search(rf"{re.escape(url)}(?![\w/])", text) is not None


def _has_title(plan: Issue, title: str) -> bool:
    return bool(title) and normalized_title(title) == normalized_title(plan.title.replace(TITLE_MARK, "", 1))


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:16]


MAX_TASK_RETRIES = 3
"""The number of failures after which a task is abandoned."""

TaskEventName = Literal["claimed", "opened", "failed", "blocked", "timeout", "reset", "completed", "abandoned"]

PLAN_ENDS, PLAN_DONE, PLAN_ASKED = "plan-ends", "plan-done", "plan-asked"
"""The loop and the `act` of journal entries on completed plans, and on requests for a plan that exists already."""

_NAMES: Mapping[object, TaskEventName] = {name: name for name in get_args(TaskEventName)}
_FAILURES = frozenset({"failed", "blocked", "timeout"})
_MARKER = re.compile(r"<!--[ \t]{0,8}task-event[ \t]{0,8}(\{[^{}<>\n]{1,200}\})[ \t]{0,8}-->")
_FAILED = re.compile(r"\b(?:failed|blocked)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """An event of the task with this number at its attempt, counted from 1.

    `about` is set only for a question: the `task_digest` of the task when it was asked. That is a `blocked` event which
    does not count as a failure.
    """

    task: int
    event: TaskEventName
    attempt: int
    about: str = ""


def build_task_event_marker(number: int, event: TaskEventName, attempt: int, about: str = "") -> str:
    """Return the marker for a comment about a task; readers do not see it."""
    told = {"task": number, "event": event, "attempt": attempt, **({"about": about} if about else {})}
    return f"<!-- task-event {json.dumps(told, separators=(',', ':'))} -->"


def task_digest(plan: Plan, task: Task) -> str:
    """Return a digest of the plan's text on a task; it does not depend on the assignee and the status."""
    words = (plan.goal, plan.context, task.title, task.description, *task.files)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def parse_task_event_markers(body: str) -> list[TaskEvent]:
    """Return the events in the markers of a comment, in order; quoted lines are ignored."""
    events = (_event(found[1]) for line in _own_lines(body) for found in _MARKER.finditer(line))
    return [event for event in events if event]


def count_task_failures(comments: Iterable[str], number: int) -> int:
    """Return how many attempts at a task failed, from the bodies of the comments on its plan.

    Two comments with a marker of the same attempt count once. If one says that the task is abandoned, the result is at
    least `MAX_TASK_RETRIES`.
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
    """Yield the rest of each line after the name of the task in bold."""
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
    """A request for plan `number` of `repo`; `cause` is a post, an order of the owner, or a `commitment` in a room.

    `is_openers`: whoever opened the plan announces its end in the same place.
    """

    repo: str
    number: int
    cause: str
    is_openers: bool

    @property
    def commitment(self) -> str:
        """The id of the commitment in a room, "" for a request from elsewhere."""
        return self.cause.removeprefix(_IN_ROOM) if self.cause.startswith(_IN_ROOM) else ""


def asked_in_room(commitment_id: str) -> str:
    """Return the cause of a request in a room that became a commitment."""
    return f"{_IN_ROOM}{commitment_id}"


def asked_entry(repo: Repo, plan: Issue, cause: str) -> Entry:
    """Return the journal entry on a request by `cause` for something that an existing plan does."""
    is_openers = wish_mark(cause) in plan.body or (cause.startswith(_IN_ROOM) and not wish_of(plan.body))
    return ask_entry(PlanAsk(repo.full_name, plan.number, cause, is_openers), plan.html_url)


def ask_entry(ask: PlanAsk, url: str) -> Entry:
    """Return the journal entry on a request for the plan at `url`."""
    data = {"act": PLAN_ASKED, "repo": ask.repo, "number": ask.number, "cause": ask.cause, "openers": ask.is_openers}
    summary = f"What was asked for is what {ask.repo}#{ask.number} is for, so no other plan is made"
    return Entry("life", PLAN_ENDS, summary, line=None, reason=url, trigger_uri=ask.cause, data=data)


def ask_of(entry: Entry) -> PlanAsk:
    """Return the request in such an entry. Raises `KeyError` for another entry."""
    told = entry.data
    return PlanAsk(told["repo"], told["number"], told["cause"], told["openers"])
