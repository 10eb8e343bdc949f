"""What must be remembered of a thread on GitHub, and how it changes: one pure reducer. Nobody else changes a record.

`new` was led to and not met, `active` is to be answered, `awaiting_response` was answered or needs no answer now,
`concluded` we left, `closed` is closed on GitHub.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from modules.lives.github.types import IssueThread
from modules.runtime.record_file import FileRecord, Moment
from modules.services.github_threads.threads import ThreadSource, WaitingThread

OVER_AFTER = timedelta(days=30)
"""So long after it was last looked at, a thread that is over is forgotten."""
OLD_AFTER = timedelta(days=60)
"""So long after it was last looked at, any thread is forgotten."""

EngagementState = Literal["new", "active", "awaiting_response", "concluded", "closed"]


class Engagement(FileRecord):
    """One thread. `our_comment_id` is the newest of our comments, as it was when the thread was read last.

    `silent_over` is the digest of the thread's words when the model chose silence last, "" if it never did.
    """

    owner: str
    repo: str
    number: int
    type: Literal["issue", "pull"]
    url: str
    first_seen: Moment
    last_checked: Moment
    last_commented_at: Moment | None = None
    our_comment_id: int | None = None
    our_comment_count: int = 0
    state: EngagementState = "new"
    conclusion_reason: str | None = None
    source: ThreadSource = "github_notification"
    concluded_at: Moment | None = None
    reengagement_count: int = 0
    silent_over: str = ""


@dataclass(frozen=True, slots=True)
class Tracked:
    """Something led to the thread, which people read at `url`."""

    waiting: WaitingThread
    url: str


@dataclass(frozen=True, slots=True)
class ThreadRead:
    """The thread was read, and is to be answered or not."""

    thread: IssueThread
    login: str
    is_to_be_answered: bool


@dataclass(frozen=True, slots=True)
class Commented:
    """A comment of ours is on its way, or waits for the owner's approval."""


@dataclass(frozen=True, slots=True)
class Reentered:
    """Somebody called us back into a thread that we left; `by_owner` if the owner did."""

    by_owner: bool


@dataclass(frozen=True, slots=True)
class LeftThread:
    """We leave the thread."""

    reason: str


@dataclass(frozen=True, slots=True)
class StayedSilent:
    """The model read the thread and chose silence."""

    thread: IssueThread


EngagementEvent = Tracked | ThreadRead | Commented | Reentered | LeftThread | StayedSilent


def after(record: Engagement | None, event: EngagementEvent, now: datetime) -> Engagement | None:
    """Return the record after an event; None where there is none, and the event begins none."""
    if isinstance(event, Tracked):
        return record.replace(last_checked=now) if record else _begun(event, now)
    if record is None:
        return None
    match event:
        case ThreadRead():
            return _read(record, event, now)
        case Commented():
            changes: dict[str, object] = {"last_commented_at": now, "state": "awaiting_response"}
        case StayedSilent(thread=thread):
            changes = {"silent_over": thread.digest}
        case Reentered(by_owner=by_owner):
            count = record.reengagement_count + (0 if by_owner else 1)
            changes = {"state": "active", "concluded_at": None, "conclusion_reason": None, "reengagement_count": count}
        case LeftThread(reason=reason):
            changes = {"state": "concluded", "concluded_at": now, "conclusion_reason": reason}
    return record.replace(last_checked=now, **changes)


def _begun(tracked: Tracked, now: datetime) -> Engagement:
    waiting = tracked.waiting
    owner, _, repo = waiting.repo.partition("/")
    return Engagement(
        owner=owner,
        repo=repo,
        number=waiting.number,
        type=waiting.kind,
        url=tracked.url,
        first_seen=now,
        last_checked=now,
        source=waiting.source,
    )


def _read(record: Engagement, event: ThreadRead, now: datetime) -> Engagement:
    own = event.thread.by(event.login)
    seen = {
        "last_checked": now,
        "url": event.thread.issue.html_url,
        "type": "pull" if event.thread.issue.is_pull_request else "issue",
        "our_comment_count": len(own),
        **({"our_comment_id": own[-1].id, "last_commented_at": own[-1].created_at} if own else {}),
    }
    state: EngagementState = "active" if event.is_to_be_answered else "awaiting_response"
    if not event.thread.is_open:
        state = "closed"
    elif record.state == "concluded":
        state = "concluded"
    return Engagement.model_validate({**record.model_dump(), **seen, "state": state})


def is_outlived(record: Engagement, now: datetime) -> bool:
    """Return whether a record has outlived its use."""
    age = now - record.last_checked
    return age > OLD_AFTER or (age > OVER_AFTER and record.state in {"concluded", "closed"})
