"""Notifications of one account, and which of them require something. Every operation returns `ApiResult`.

A poll is conditional: it passes the marker of the poll before, and if nothing changed GitHub answers 304, which costs
nothing. The caller keeps the marker, and passes it back once the result has been processed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from adapters.github import convert
from adapters.github.checks import moment_of, no_time
from adapters.github.sending import has_next
from adapters.github.types import GitHubNotification, NotificationPoll
from common.result import ApiResult, Err

if TYPE_CHECKING:
    from adapters.github.calls import Ask, Callers

MAX_NOTIFICATION_PAGES = 20
NOTIFICATIONS_PER_PAGE = 50
USUAL_POLL_S = 60
_ETAG = ("W/", '"')
ACTIONABLE = dict.fromkeys(("mention", "author", "comment", "review_requested", "assign"), True)
"""GitHub's reasons for notifications that may require something of us, all in threads that we take part in."""


class Notifications:
    """The notifications of the account. GitHub refuses a fine-grained token here."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def poll(self, *, unread_only: bool = True, since: str = "", marker: str = "") -> ApiResult[NotificationPoll]:
        """Return the notifications of threads that we take part in, or that nothing changed; not those of watching.

        Args:
            unread_only: without those that are marked as read.
            since: only those changed since, ISO-8601.
            marker: the marker of the last poll with the same arguments; "" for everything.

        """
        what = "read the notifications"
        moment = moment_of(since)
        told = f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""
        asked = {"per_page": NOTIFICATIONS_PER_PAGE, "all": "false" if unread_only else "true"}
        asked |= {"participating": "true", **({"since": told} if told else {})}
        return await self._caller(no_time(what, since, moment)).read(what, lambda ask: _polled(ask, asked, marker))

    async def mark_read(self, thread_id: str) -> ApiResult[None]:
        """Mark the thread of a notification (its `id`) as read."""
        what = "mark a notification as read"
        if not thread_id.isdecimal():
            return Err(f"could not {what}: {thread_id!r} is no thread", kind="invalid")
        url = f"/notifications/threads/{thread_id}"
        return await self._caller().write(what, lambda ask: ask.do("PATCH", url))


def _polled(ask: Ask, asked: dict[str, Any], marker: str) -> NotificationPoll:
    found: dict[str, GitHubNotification] = {}
    interval, newest, complete = USUAL_POLL_S, marker, False
    for page in range(1, MAX_NOTIFICATION_PAGES + 1):
        headers, data = ask.requester.requestJsonAndCheck(
            "GET",
            "/notifications",
            parameters={**asked, "page": page},
            headers=_conditional(marker) if page == 1 else {},
        )
        if page == 1:
            told = str(headers.get("x-poll-interval", ""))
            interval = int(told) if told.isdecimal() else USUAL_POLL_S
            newest = str(headers.get("last-modified") or headers.get("etag") or "")
            if data is None:
                return NotificationPoll((), changed=False, poll_interval_s=interval, marker=newest or marker)
        for one in map(convert.notification, data):
            found.setdefault(one.id, one)
        if complete := not has_next(headers):
            break
    return NotificationPoll(
        tuple(found.values()),
        changed=True,
        poll_interval_s=interval,
        complete=complete,
        marker=newest if complete else "",
    )


def _conditional(marker: str) -> dict[str, str]:
    """Return the header that makes a request conditional on a change since the answer that gave `marker`."""
    if not marker:
        return {}
    return {"If-None-Match" if marker.startswith(_ETAG) else "If-Modified-Since": marker}


def filter_actionable_notifications(items: Iterable[GitHubNotification], me: str) -> list[GitHubNotification]:
    """Return those that may require something of the account `me`, in the given order; none if `me` is ""."""
    return [item for item in items if ACTIONABLE.get(item.reason)] if me else []
