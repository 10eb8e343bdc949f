"""What is new: GitHub's notifications, and threads to which Bluesky posts link. Each waits as a row of work.

What was read is noted after its rows are written, so a crash in between only reads it again. A post is looked through
whatever becomes of it on Bluesky. A look at the notifications is conditional, and not sooner than GitHub asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from adapters.github.client import GitHub
from adapters.github.notifications import filter_actionable_notifications
from adapters.github.parse_url import (
    GitHubUrl,
    extract_github_urls,
    extract_number_from_api_url,
    parse_github_url,
)
from adapters.github.types import GitHubNotification, NotificationPoll
from common.clock import Clock, iso, parse_iso
from common.errors import Transient
from common.result import ApiResult, Err, Ok, answering
from modules.lives.github.state import GitHubState
from modules.services.github_threads.threads import NewThread, ThreadInbox, ThreadSource
from modules.services.inbox.received import ReceivedPost
from modules.services.work.types import Perceiver

_FIRST_LOOK_BACK = timedelta(days=1)
_SETTLED_AFTER = timedelta(seconds=5)
_KINDS: dict[str, Literal["issue", "pull"]] = {"Issue": "issue", "PullRequest": "pull"}
_REMEDY = "Only a classic token can read notifications (scope `notifications`): set one as AGENT_GITHUB_TOKEN"
_IN_WORKSPACE: dict[tuple[str, str], ThreadSource] = {("pull", "review_requested"): "workspace_pr_review"}


@dataclass(slots=True)
class GitHubPerceiver(Perceiver):
    """Takes in what leads to a thread. `owner_did` is the owner's account on Bluesky.

    `watched` returns the workspaces that are watched, `owner/name` in lower case.
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
        """Take in what led to threads since the last look, and forget the threads that outlived their use.

        Raises `Transient` where the notifications cannot be read.
        """
        if not self.github.enough_for_loops:
            return
        self.state.cleanup_old_conversations()
        await self.look_at_posts()
        if isinstance(told := await self.look_at_notifications(), Err):
            remedy = _REMEDY if told.kind == "auth" else ""
            raise Transient(f"GitHub's notifications cannot be read: {told.error}", remedy=remedy)

    async def look_at_posts(self) -> int:
        """Take in the threads to which the posts since the last look link; returns how many are new."""
        rows = await self.state.posts_since_last_look()
        count = await self.threads.take_in(one for row in rows for one in threads_in(row, self.owner_did))
        await self.state.note_posts(rows)
        return count

    @answering
    async def look_at_notifications(self) -> ApiResult[int]:
        """Take in the threads that the notifications since the last look are about; returns how many are new."""
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
        """The marker for the next look; "" where the newest item is so new that another may still come beside it.

        GitHub tells the time in whole seconds: of two changes in one second a conditional look could miss the second.
        """
        is_settled = not newest or self.clock.now() - parse_iso(newest) > _SETTLED_AFTER
        return poll.marker if is_settled else ""


def thread_of(notification: GitHubNotification, watched: Collection[str]) -> NewThread | None:
    """Return the thread that a notification is about; None for what is neither an issue nor a pull request.

    `watched` are the workspaces that are watched, `owner/name` in lower case: where a review is asked for there, the
    thread waits for that.
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
    """Return the threads on GitHub to which a post links; its text is read only where it has no such links."""
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
