"""Keeps a record of each thread on GitHub, and finds new threads. Each new one becomes a row of work.

Only `after` changes a record. A `new` thread was found but not read, an `active` one is to be answered; one that is
`awaiting_response` was answered or needs no answer now; we left a `concluded` one; a `closed` one is closed on GitHub.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.notifications import filter_actionable_notifications
from adapters.github.types import (
    GitHubNotification,
    GitHubUrl,
    NotificationPoll,
    extract_github_urls,
    extract_number_from_api_url,
    parse_github_url,
)
from common.clock import Clock, iso, parse_iso
from common.errors import Transient
from common.result import ApiResult, Err, Ok, answering
from modules.lives.github.types import IssueThread
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.record_file import FileRecord, Moment, RecordFile
from modules.services.github_threads import NewThread, ThreadInbox, ThreadSource, WaitingThread
from modules.services.inbox import received
from modules.services.inbox.received import ReceivedPost
from modules.services.work.types import PausingPerceiver

OVER_AFTER = timedelta(days=30)
"""How long after the last look the record of a thread that is over is deleted."""
OLD_AFTER = timedelta(days=60)
"""How long after the last look the record of any thread is deleted."""

EngagementState = Literal["new", "active", "awaiting_response", "concluded", "closed"]


class Engagement(FileRecord):
    """The record of one thread. `our_comment_id` is our newest comment at the time when the thread was last read.

    `silent_over` is the digest of the thread when the model last chose silence, "" if it never did. `reading` is the
    time of the newest comment at the last attempt to answer, and `read_until` that at the last one that succeeded.
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
    reading: Moment | None = None
    read_until: Moment | None = None


@dataclass(frozen=True, slots=True)
class Tracked:
    """A notification or a post led to the thread, whose page is `url`."""

    waiting: WaitingThread
    url: str


@dataclass(frozen=True, slots=True)
class ThreadRead:
    """The thread was read; `is_to_be_answered` says whether it needs an answer."""

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
    """Return the record after an event; None if there is no record and the event does not begin one."""
    if isinstance(event, Tracked):
        return record.replace(last_checked=now) if record else _begun(event, now)
    if record is None:
        return None
    match event:
        case ThreadRead():
            return _read(record, event, now)
        case Commented():
            changes: dict[str, object] = {"last_commented_at": now, "state": "awaiting_response"}
            changes["read_until"] = record.reading
        case StayedSilent(thread=thread):
            changes = {"silent_over": thread.digest, "read_until": record.reading}
        case Reentered(by_owner=by_owner):
            count = record.reengagement_count + (0 if by_owner else 1)
            changes = {"state": "active", "concluded_at": None, "conclusion_reason": None, "reengagement_count": count}
        case LeftThread(reason=reason):
            changes = {"state": "concluded", "concluded_at": now, "conclusion_reason": reason}
            changes["read_until"] = record.reading
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
    if event.is_to_be_answered:
        seen["reading"] = (event.thread.comments or (event.thread.issue,))[-1].created_at
    state: EngagementState = "active" if event.is_to_be_answered else "awaiting_response"
    if not event.thread.is_open:
        state = "closed"
    elif record.state == "concluded":
        state = "concluded"
    return Engagement.model_validate({**record.model_dump(), **seen, "state": state})


def is_outlived(record: Engagement, now: datetime) -> bool:
    """Return whether a record is old enough to be deleted."""
    age = now - record.last_checked
    return age > OLD_AFTER or (age > OVER_AFTER and record.state in {"concluded", "closed"})


FILE = "github_engagement.json"

_POSTS_READ = "github.posts_read"


class GitHubState:
    """Stores the records by `owner/name#number`. `notice` is a line for the owner about a problem with their file."""

    def __init__(self, folder: Path, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._file = RecordFile(folder / FILE, "conversations", Engagement)
        self.notice = self._file.notice

    @property
    def seen_at(self) -> str:
        """The time up to which notifications were read, ISO-8601; "" before the first look."""
        return str(self._file.rest.get("seenAt") or "")

    async def posts_since_last_look(self) -> list[ReceivedPost]:
        """Return the Bluesky posts received since `note_posts`, oldest first; at first those of the last day.

        A mark in the future, as after the clock was set back, counts as none.
        """
        since, now = await self._database.run(lambda rows: marks.get(rows, _POSTS_READ)), self._clock.now()
        begin = since if "" < since <= iso(now) else iso(now - timedelta(days=1))
        return await self._database.run(lambda connection: received.taken_in_since(connection, begin))

    async def note_posts(self, rows: Iterable[ReceivedPost]) -> None:
        """Store that these posts were searched for threads."""
        newest = min(max((row.received_at for row in rows), default=""), iso(self._clock.now()))
        if newest:
            await self._database.run(lambda connection: marks.put(connection, {_POSTS_READ: newest}))

    def note_checked(self, seen_at: str) -> None:
        """Store that the notifications were read up to `seen_at`. Raises `StorageError`."""
        self._file.rest |= {"seenAt": seen_at, "lastNotificationCheck": iso(self._clock.now())}
        self._file.save()

    def known(self, key: str) -> Engagement | None:
        """Return the record of a thread, or None."""
        return self._file.records.get(key)

    def take_over(self, waiting: WaitingThread, names: Iterable[str]) -> None:
        """Continue the record of a thread from an earlier name of its repository, one of `names`, unless it has one.

        Raises `StorageError`.
        """
        records, key = self._file.records, waiting.talk_key
        earlier = (replace(waiting, repo=name).talk_key for name in names)
        if key not in records and (known := next((one for one in earlier if one in records), None)):
            records[key] = records.pop(known).replace(owner=waiting.place.owner, repo=waiting.place.name)
            self._file.save()

    def note(self, key: str, event: EngagementEvent) -> None:
        """Update the record of a thread by an event. Raises `StorageError`."""
        record = after(self._file.records.get(key), event, self._clock.now())
        if record is not None:
            self._file.records[key] = record
            self._file.save()

    def cleanup_old_conversations(self) -> None:
        """Delete the records that are old enough. Raises `StorageError`."""
        now = self._clock.now()
        outlived = [key for key, record in self._file.records.items() if is_outlived(record, now)]
        for key in outlived:
            del self._file.records[key]
        if outlived:
            self._file.save()


_FIRST_LOOK_BACK = timedelta(days=1)
_SETTLED_AFTER = timedelta(seconds=5)
_KINDS: dict[str, Literal["issue", "pull"]] = {"Issue": "issue", "PullRequest": "pull"}
_REMEDY = "Only a classic token can read notifications (scope `notifications`): set one as AGENT_GITHUB_TOKEN"
_IN_WORKSPACE: dict[tuple[str, str], ThreadSource] = {("pull", "review_requested"): "workspace_pr_review"}


@dataclass(slots=True)
class GitHubPerceiver(PausingPerceiver):
    """Adds the threads that notifications and posts lead to. `owner_did` is the owner's account on Bluesky.

    `watched` returns the watched workspaces, `owner/name` in lower case.
    """

    state: GitHubState
    threads: ThreadInbox
    github: GitHub
    clock: Clock
    owner_did: str
    watched: Callable[[], Collection[str]]
    _marker: tuple[str, str] = field(default=("", ""), init=False)
    _not_before: float = field(default=0.0, init=False)

    async def perceive(self) -> None:
        """Add the threads found since the last look, and delete old records.

        Raises `Transient` if the notifications cannot be read.
        """
        if not self.github.enough_for_loops:
            return
        self.state.cleanup_old_conversations()
        await self.look_at_posts()
        if isinstance(told := await self.look_at_notifications(), Err):
            remedy = _REMEDY if told.kind == "auth" else ""
            raise Transient(f"GitHub's notifications cannot be read: {told.error}", remedy=remedy)

    def look_anew(self) -> None:
        self._not_before = 0.0

    async def look_at_posts(self) -> int:
        """Add the threads to which the posts since the last look link; return how many are new."""
        rows = await self.state.posts_since_last_look()
        count = await self.threads.take_in(one for row in rows for one in threads_in(row, self.owner_did))
        await self.state.note_posts(rows)
        return count

    @answering
    async def look_at_notifications(self) -> ApiResult[int]:
        """Add the threads that the notifications since the last look are about; return how many are new."""
        if self.clock.monotonic() < self._not_before:
            return Ok(0)
        since = self.state.seen_at or iso(self.clock.now() - _FIRST_LOOK_BACK)
        marked_since, marker = self._marker
        poll = (
            await self.github.notifications.poll(
                unread_only=False, since=since, marker=marker if marked_since == since else ""
            )
        ).or_raise()
        self._not_before = self.clock.monotonic() + self.clock.real(poll.poll_interval_s)
        actionable = filter_actionable_notifications(poll.items, self.github.login)
        watched = self.watched()
        count = await self.threads.take_in(thread for one in actionable if (thread := thread_of(one, watched)))
        newest = max((one.updated_at for one in poll.items), default="")
        seen_at = max(newest, since) if poll.complete else since
        self.state.note_checked(seen_at)
        if poll.changed:
            self._marker = (seen_at, self._trusted(poll, newest))
        return Ok(count)

    def _trusted(self, poll: NotificationPoll, newest: str) -> str:
        """Return the marker for the next look; "" if the newest item is so new that its second may bring another one.

        GitHub gives times in whole seconds: a conditional look could miss the later of two changes in one second.
        """
        is_settled = not newest or self.clock.now() - parse_iso(newest) > _SETTLED_AFTER
        return poll.marker if is_settled else ""


def thread_of(notification: GitHubNotification, watched: Collection[str]) -> NewThread | None:
    """Return the thread that a notification is about; None if it is neither an issue nor a pull request.

    `watched` are the watched workspaces, `owner/name` in lower case: a review request there becomes the source of the
    thread.
    """
    number = extract_number_from_api_url(notification.subject.url)
    if number is None or notification.subject.type not in _KINDS:
        return None
    kind, place = _KINDS[notification.subject.type], notification.repo.full_name
    in_workspace = _IN_WORKSPACE.get((kind, notification.reason)) if place.lower() in watched else None
    return NewThread(
        repo=place,
        number=number,
        kind=kind,
        source=in_workspace or "github_notification",
        at=notification.updated_at,
        reason=notification.reason,
        notice=notification.id,
    )


def threads_in(row: ReceivedPost, owner_did: str) -> Iterator[NewThread]:
    """Yield the threads on GitHub to which a post links; its text is searched only if it has no such links."""
    for url in _urls_in(row):
        if url.type != "discussion":
            yield NewThread(
                repo=url.place.full_name,
                number=url.number,
                kind=url.type,
                source="bluesky_url_owner" if row.author_did == owner_did else "bluesky_url",
                at=row.indexed_at,
                uri=row.uri,
            )


def _urls_in(row: ReceivedPost) -> list[GitHubUrl]:
    links = row.payload.get("links")
    linked = [parse_github_url(link) for link in links if isinstance(link, str)] if isinstance(links, list) else []
    found = {one.key: one for one in linked if one}
    return list(found.values()) or extract_github_urls(str(row.payload.get("text") or ""))
