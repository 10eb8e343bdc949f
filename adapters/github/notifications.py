"""Notifications of one account, and whether anything came on GitHub for one that sleeps.

The reads are conditional: if nothing changed since the last one, GitHub answers 304, which does not count towards the
account's hourly limit. The caller of `poll` keeps its marker, and passes it back once the result has been processed. Of
an account that sleeps no text is kept.
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
import hashlib
import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import httpx

from adapters.github.sending import API_VERSION, USER_AGENT, error_from_response, error_from_transport
from common.clock import Clock
from common.lenient_json import parse
from common.result import Ok

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


NOTIFICATIONS = "/notifications"
MOST_ADDRESSES = 60
_ASKED: Mapping[str, str | int] = {"all": "true", "participating": "true", "per_page": 50}
_NEWEST_ISSUES: Mapping[str, str | int] = {"state": "all", "sort": "updated", "direction": "desc", "per_page": 5}
_FIELDS = ("id", "updated_at", "state", "comments")
_REPO_PARTS = 5
_GONE = frozenset({404, 410, 451})  # missing, or without issues, or taken down
_MARK_CHARS = 32


def is_watchable(address: str) -> bool:
    """Return whether this is the address of the notifications, or of the issues of a repository."""
    parts = address.split("/")
    named = parts[2:4]
    return address == NOTIFICATIONS or (
        len(parts) == _REPO_PARTS
        and (parts[0], parts[1], parts[4]) == ("", "repos", "issues")
        and all(one.strip(".") and one == quote(one, safe="") for one in named)
    )


class GitHubNewest:
    """Checks `addresses` for one account; each `is_watchable`. `seen` has a mark of what was at each."""

    def __init__(
        self, client: httpx.AsyncClient, *, api_url: str, token: str, addresses: Sequence[str], clock: Clock
    ) -> None:
        self.service = api_url
        self.seen: dict[str, str] = {}
        self.slower = 1.0
        """How many times longer than usual GitHub asks to wait between two looks."""
        self._client = client
        self._token = token
        self._addresses = addresses
        self._clock = clock
        self._validators: dict[str, str] = {}

    async def came(self) -> ApiResult[bool]:
        """Return whether anything came since `seen`; the first look sets `seen`."""
        is_new = False
        for address in self._addresses:
            if isinstance(mark := await self._mark(address), Err):
                return Ok(is_new) if is_new else mark
            if mark.data is not None and self._is_new(mark.data, self.seen.setdefault(address, mark.data)):
                is_new = True
                self._validators.pop(address)  # the next look finds it again
        return Ok(is_new)

    async def _mark(self, address: str) -> ApiResult[str | None]:
        """Return the mark of what is there now; None if nothing changed since the last look."""
        what, known = f"read {address}", self._validators.get(address)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
            "User-Agent": USER_AGENT,
            **({"If-None-Match": known} if known else {}),
        }
        params = dict(_ASKED if address == NOTIFICATIONS else _NEWEST_ISSUES)
        try:
            answer = await self._client.get(f"{self.service}{address}", params=params, headers=headers)
            body = parse(answer.content) if answer.content else None
        except httpx.HTTPError as error:
            return error_from_transport(error, what=what, write=False)
        except ValueError:
            return Err(f"could not {what}: the answer could not be read", "transient")
        if address == NOTIFICATIONS:
            told = answer.headers.get("x-poll-interval", "")
            self.slower = max(1.0, int(told) / USUAL_POLL_S) if told.isdecimal() else 1.0
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return Ok(None)
        if answer.status_code in _GONE and address != NOTIFICATIONS:
            self._validators[address] = ""
            return Ok("gone")
        if not answer.is_success or not isinstance(body, list):
            now = self._clock.now()
            told_headers = {name.lower(): value for name, value in answer.headers.items()}
            return error_from_response(answer.status_code, body, told_headers, what=what, write=False, now=now)
        self._validators[address] = answer.headers.get("etag", "")
        return Ok(_mark_of(address, [one for one in body if isinstance(one, dict)]))

    @staticmethod
    def _is_new(mark: str, before: str) -> bool:
        """Return whether `mark` has parts that `before` lacks; a notification that is gone is not news."""
        return not {*mark.split()} <= {*before.split()}


def _mark_of(address: str, listed: Sequence[Mapping[str, Any]]) -> str:
    if address == NOTIFICATIONS:
        asking = (one for one in listed if ACTIONABLE.get(str(one.get("reason"))))
        return " ".join(sorted(f"{one.get('id')}@{one.get('updated_at')}" for one in asking))
    told = json.dumps([[one.get(field) for field in _FIELDS] for one in listed])
    return hashlib.sha256(told.encode()).hexdigest()[:_MARK_CHARS]
