"""Notifications, one function for each operation of the API; and the call and answer that all operations share.

Notifications refuse fine-grained tokens, as on GitHub.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.bodies import Window
from town.github.network import GitHubNetwork
from town.github.repository import GitRepository
from town.github.values import GitHubAccount, Json, Refusal, StoredIssue, StoredRepo, StoredThread, Token, not_found
from town.github.views import GitHubViews, moment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GitHubCall:
    """A parsed request. `path` holds the parameters of its path."""

    network: GitHubNetwork
    views: GitHubViews
    token: Token | None
    path: Mapping[str, Any]
    query: Mapping[str, str]
    body: Json

    @property
    def viewer(self) -> GitHubAccount | None:
        """The caller; None if anonymous."""
        return self.token.account if self.token else None

    @property
    def writer(self) -> GitHubAccount:
        """The caller, who must be authenticated. Raises `Refusal`."""
        if self.viewer is None:
            raise Refusal(401, "Requires authentication")
        return self.viewer

    @property
    def repo(self) -> StoredRepo:
        """The repository that the path names, by name or by number. Raises `Refusal`."""
        if "repo_id" in self.path:
            return self.network.repo_by_id(self.path["repo_id"], self.viewer)
        return self.network.repo(self.path["owner"], self.path["repo"], self.viewer)

    @property
    def issue(self) -> StoredIssue:
        """The issue that the path names. Raises `Refusal`."""
        return self.network.issue(self.repo, self.path["number"])

    @property
    def git(self) -> GitRepository:
        """The Git repository behind `repo`. Raises `Refusal`."""
        return self.network.git(self.repo)

    def page(self, found: list[T], view: Callable[[T], Json]) -> Answer:
        """Return the page of a list that the query asks for."""
        window = Window.of(self.query)
        return Answer([view(one) for one in window.cut(found)], window=window, count=len(found))


@dataclass(frozen=True, slots=True)
class Answer:
    """A success.

    Attributes:
        body: the content; None for an answer without a body.
        status: 200 and its like.
        window: which page of a list of `count` the body is, if it is one.
        modified: when it last changed, if that is sent.
        headers: further ones.

    """

    body: Any
    status: int = 200
    window: Window | None = None
    count: int = 0
    modified: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[GitHubCall], Answer | Awaitable[Answer]]


_LARGEST_PAGE = 50
_POLL_INTERVAL_S = 60


def _reader(call: GitHubCall) -> GitHubAccount:
    """Return the caller, if the token may read notifications. Raises `Refusal`."""
    if call.token and call.token.is_fine_grained:
        raise Refusal(403, "Resource not accessible by personal access token")
    return call.writer


async def _list(call: GitHubCall) -> Answer:
    account, query = _reader(call), call.query
    repo = call.repo if call.path else None
    found = call.network.state.notifications.of(
        account,
        read=query.get("all") == "true",
        participating=query.get("participating") == "true",
        since=parse_iso_or_none(query.get("since")),
        before=parse_iso_or_none(query.get("before")),
        repo_id=repo.id if repo else None,
    )
    window = Window.of(query, largest=_LARGEST_PAGE, default=_LARGEST_PAGE)
    return Answer(
        [_view(call, thread) for thread in window.cut(found)],
        window=window,
        count=len(found),
        modified=call.network.state.notifications.modified(account),
        headers={"x-poll-interval": str(_POLL_INTERVAL_S)},
    )


async def _read_all(call: GitHubCall) -> Answer:
    account = _reader(call)
    until = parse_iso_or_none(bodies.text(call.body, "last_read_at")) or call.network.clock.now()
    repo_id = call.repo.id if call.path else None
    found = call.network.state.notifications.of(account, repo_id=repo_id)
    seen = [thread for thread in found if thread.updated_at.replace(microsecond=0) <= until]
    call.network.state.notifications.set_read(seen, at=call.network.clock.now())
    return Answer(None, 205)


def _thread(call: GitHubCall) -> StoredThread:
    found = call.network.state.notifications.find(_reader(call), call.path["thread_id"])
    if found is None:
        raise not_found()
    return found


async def _get(call: GitHubCall) -> Answer:
    return Answer(_view(call, _thread(call)))


async def _read(call: GitHubCall) -> Answer:
    call.network.state.notifications.set_read([_thread(call)], at=call.network.clock.now())
    return Answer(None, 205)


async def _done(call: GitHubCall) -> Answer:
    call.network.state.notifications.set_read([_thread(call)], at=call.network.clock.now(), done=True)
    return Answer(None, 204)


def _view(call: GitHubCall, thread: StoredThread) -> Json:
    repo, issue = call.network.repo_by_id(thread.repo_id, thread.account), thread.issue
    at, kind = f"{call.views.base}/repos/{repo.full_name}", "pulls" if issue.is_pull else "issues"
    url = f"{call.views.base}/notifications/threads/{thread.id}"
    latest = f"{at}/issues/comments/{thread.comment_id}" if thread.comment_id else f"{at}/{kind}/{issue.number}"
    return {
        "id": str(thread.id),
        "unread": thread.unread,
        "reason": thread.cause,
        "updated_at": moment(thread.updated_at),
        "last_read_at": moment(thread.last_read_at) if thread.last_read_at else None,
        "subject": {
            "title": issue.title,
            "url": f"{at}/{kind}/{issue.number}",
            "latest_comment_url": latest,
            "type": "PullRequest" if issue.is_pull else "Issue",
        },
        "repository": call.views.repo(repo),
        "url": url,
        "subscription_url": f"{url}/subscription",
    }


ELSEWHERE: dict[str, dict[str, Handler]] = {
    "/notifications": {"GET": _list, "PUT": _read_all},
    "/notifications/threads/{thread_id:int}": {"GET": _get, "PATCH": _read, "DELETE": _done},
}
IN_REPO: dict[str, dict[str, Handler]] = {"/notifications": {"GET": _list, "PUT": _read_all}}
