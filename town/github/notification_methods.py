"""Notifications: one function for each operation of the interface. Fine-grained tokens are refused, as by GitHub."""

from __future__ import annotations

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.bodies import Window
from town.github.call import Answer, GitHubCall, Handler
from town.github.values import GitHubAccount, Json, Refusal, StoredThread, not_found
from town.github.views import moment

_LARGEST_PAGE = 50
_POLL_INTERVAL_S = 60


def _reader(call: GitHubCall) -> GitHubAccount:
    """Who asks, if the token may read notifications. Raises `Refusal`."""
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
