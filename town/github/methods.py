"""What can be asked of the town's GitHub: one function for each operation of the interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.bodies import Window
from town.github.network import GitHubNetwork
from town.github.values import Account, Json, Refusal, StoredIssue, StoredRepo, not_found
from town.github.views import Views


@dataclass(frozen=True, slots=True)
class Call:
    """A request, understood. `path` holds what the address named."""

    network: GitHubNetwork
    views: Views
    viewer: Account | None
    path: Mapping[str, Any]
    query: Mapping[str, str]
    body: Json

    @property
    def writer(self) -> Account:
        """Who asks, where nobody may not. Raises `Refusal`."""
        if self.viewer is None:
            raise Refusal(401, "Requires authentication")
        return self.viewer

    @property
    def repo(self) -> StoredRepo:
        """The repository that the address names, by name or by number. Raises `Refusal`."""
        if "repo_id" in self.path:
            return self.network.repo_by_id(self.path["repo_id"], self.viewer)
        return self.network.repo(self.path["owner"], self.path["repo"], self.viewer)

    @property
    def issue(self) -> StoredIssue:
        """The issue that the address names. Raises `Refusal`."""
        return self.network.issue(self.repo, self.path["number"])


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: its status and body. `page` and `count` where the body is one page of a list of `count`."""

    body: Any
    status: int = 200
    window: Window | None = None
    count: int = 0


Handler: TypeAlias = Callable[[Call], Answer]


def _me(call: Call) -> Answer:
    return Answer(_profile(call, call.writer))


def _user(call: Call) -> Answer:
    found = call.network.find(call.path["login"])
    if found is None:
        raise not_found()
    return Answer(_profile(call, found))


def _profile(call: Call, account: Account) -> Json:
    owned = [repo for repo in call.network.repos() if repo.owner == account and not repo.private]
    return call.views.profile(account, public_repos=len(owned))


def _repo(call: Call) -> Answer:
    return Answer(call.views.repo(call.repo))


def _labels(call: Call) -> Answer:
    repo, window = call.repo, Window.of(call.query)
    labels = list(repo.labels.values())
    shown = [call.views.label(repo, label) for label in window.cut(labels)]
    return Answer(shown, window=window, count=len(labels))


def _list_issues(call: Call) -> Answer:
    repo, window = call.repo, Window.of(call.query)
    found = bodies.chosen_issues([issue for issue in repo.issues.values() if issue], call.query)
    shown = [call.views.issue(repo, issue) for issue in window.cut(found)]
    return Answer(shown, window=window, count=len(found))


def _open_issue(call: Call) -> Answer:
    writer, repo = call.writer, call.repo
    made = call.network.open_issue(
        repo,
        writer,
        title=bodies.text(call.body, "title", required=True) or "",
        body=bodies.text(call.body, "body"),
        labels=bodies.names(call.body, "labels") or (),
        assignees=bodies.names(call.body, "assignees") or (),
    )
    return Answer(call.views.issue(repo, made), 201)


def _issue(call: Call) -> Answer:
    return Answer(call.views.issue(call.repo, call.issue))


def _change_issue(call: Call) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    call.network.change_issue(
        repo,
        issue,
        writer,
        title=bodies.text(call.body, "title"),
        body=bodies.text(call.body, "body"),
        state=bodies.state(call.body),
        state_reason=bodies.text(call.body, "state_reason"),
        labels=bodies.names(call.body, "labels"),
        assignees=bodies.names(call.body, "assignees"),
    )
    return Answer(call.views.issue(repo, issue))


def _list_comments(call: Call) -> Answer:
    repo, issue, window = call.repo, call.issue, Window.of(call.query)
    since = parse_iso_or_none(call.query.get("since"))
    found = [one for one in issue.comments if since is None or one.updated_at.replace(microsecond=0) >= since]
    shown = [call.views.comment(repo, issue, comment) for comment in window.cut(found)]
    return Answer(shown, window=window, count=len(found))


def _write_comment(call: Call) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    written = call.network.write_comment(repo, issue, writer, bodies.text(call.body, "body", required=True) or "")
    return Answer(call.views.comment(repo, issue, written), 201)


def _delete_comment(call: Call) -> Answer:
    call.network.delete_comment(call.repo, call.path["comment_id"], call.writer)
    return Answer(None, 204)


def _add_assignees(call: Call) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    call.network.assign(repo, issue, writer, add=bodies.names(call.body, "assignees") or ())
    return Answer(call.views.issue(repo, issue), 201)


def _drop_assignees(call: Call) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    call.network.assign(repo, issue, writer, drop=bodies.names(call.body, "assignees") or ())
    return Answer(call.views.issue(repo, issue))


def _react(call: Call) -> Answer:
    reaction, new = call.network.react(call.issue, call.writer, bodies.reaction(call.body))
    return Answer(call.views.reaction(reaction), 201 if new else 200)


_ISSUE = "/issues/{number:int}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "": {"GET": _repo},
    "/labels": {"GET": _labels},
    "/issues": {"GET": _list_issues, "POST": _open_issue},
    _ISSUE: {"GET": _issue, "PATCH": _change_issue},
    f"{_ISSUE}/comments": {"GET": _list_comments, "POST": _write_comment},
    f"{_ISSUE}/assignees": {"POST": _add_assignees, "DELETE": _drop_assignees},
    f"{_ISSUE}/reactions": {"POST": _react},
    "/issues/comments/{comment_id:int}": {"DELETE": _delete_comment},
}
ELSEWHERE: dict[str, dict[str, Handler]] = {"/user": {"GET": _me}, "/users/{login}": {"GET": _user}}
