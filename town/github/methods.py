"""Accounts, issues and their comments: one function for each operation of the API."""

from __future__ import annotations

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.values import GitHubAccount, Json, not_found


def _me(call: GitHubCall) -> Answer:
    return Answer(_profile(call, call.writer))


def _user(call: GitHubCall) -> Answer:
    found = call.network.find(call.path["login"])
    if found is None:
        raise not_found()
    return Answer(_profile(call, found))


def _profile(call: GitHubCall, account: GitHubAccount) -> Json:
    owned = [repo for repo in call.network.repos() if repo.owner == account and not repo.private]
    return call.views.profile(account, public_repos=len(owned))


def _labels(call: GitHubCall) -> Answer:
    repo = call.repo
    labels = list(repo.labels.values())
    return call.page(labels, lambda label: call.views.label(repo, label))


def _list_issues(call: GitHubCall) -> Answer:
    repo = call.repo
    found = bodies.chosen_issues([issue for issue in repo.issues.values() if issue], call.query)
    return call.page(found, lambda issue: call.views.issue(repo, issue))


def _open_issue(call: GitHubCall) -> Answer:
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


def _issue(call: GitHubCall) -> Answer:
    return Answer(call.views.issue(call.repo, call.issue))


def _change_issue(call: GitHubCall) -> Answer:
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


def _list_comments(call: GitHubCall) -> Answer:
    repo, issue = call.repo, call.issue
    since = parse_iso_or_none(call.query.get("since"))
    found = [one for one in issue.comments if since is None or one.updated_at.replace(microsecond=0) >= since]
    return call.page(found, lambda comment: call.views.comment(repo, issue, comment))


def _write_comment(call: GitHubCall) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    written = call.network.write_comment(repo, issue, writer, bodies.text(call.body, "body", required=True) or "")
    return Answer(call.views.comment(repo, issue, written), 201)


def _delete_comment(call: GitHubCall) -> Answer:
    call.network.delete_comment(call.repo, call.path["comment_id"], call.writer)
    return Answer(None, 204)


def _add_assignees(call: GitHubCall) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    call.network.assign(repo, issue, writer, add=bodies.names(call.body, "assignees") or ())
    return Answer(call.views.issue(repo, issue), 201)


def _drop_assignees(call: GitHubCall) -> Answer:
    writer, repo, issue = call.writer, call.repo, call.issue
    call.network.assign(repo, issue, writer, drop=bodies.names(call.body, "assignees") or ())
    return Answer(call.views.issue(repo, issue))


def _react(call: GitHubCall) -> Answer:
    reaction, new = call.network.react(call.issue, call.writer, bodies.reaction(call.body))
    return Answer(call.views.reaction(reaction), 201 if new else 200)


_ISSUE = "/issues/{number:int}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "/labels": {"GET": _labels},
    "/issues": {"GET": _list_issues, "POST": _open_issue},
    _ISSUE: {"GET": _issue, "PATCH": _change_issue},
    f"{_ISSUE}/comments": {"GET": _list_comments, "POST": _write_comment},
    f"{_ISSUE}/assignees": {"POST": _add_assignees, "DELETE": _drop_assignees},
    f"{_ISSUE}/reactions": {"POST": _react},
    "/issues/comments/{comment_id:int}": {"DELETE": _delete_comment},
}
ELSEWHERE: dict[str, dict[str, Handler]] = {"/user": {"GET": _me}, "/users/{login}": {"GET": _user}}
