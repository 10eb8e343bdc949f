"""Accounts, issues with their comments and labels, and search: one function for each operation of the API."""

from collections.abc import Iterable
from datetime import datetime

from common.clock import parse_iso_or_none
from town.github import bodies
from town.github.bodies import Window
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.values import (
    GitHubAccount,
    GitHubLabel,
    Json,
    Refusal,
    StoredComment,
    StoredIssue,
    StoredRepo,
    forbidden,
    not_found,
    unprocessable,
)


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


def _worker(call: GitHubCall) -> tuple[GitHubAccount, StoredRepo]:
    """Return the caller and the repository, if the caller may label there. Raises `Refusal`."""
    writer, repo = call.writer, call.repo
    call.network.check_writable(repo)
    if not call.network.may_push(repo, writer):
        raise forbidden()
    return writer, repo


async def _create_label(call: GitHubCall) -> Answer:
    _, repo = _worker(call)
    name = (bodies.text(call.body, "name", required=True) or "").strip()
    color = (bodies.text(call.body, "color") or "ededed").removeprefix("#")
    if not name:
        raise unprocessable("Label", "name", "missing_field")
    if name.lower() in repo.labels:
        raise unprocessable("Label", "name", "already_exists")
    label = GitHubLabel(call.network.new_id(), name, color, bodies.text(call.body, "description"))
    repo.labels[name.lower()] = label
    return Answer(call.views.label(repo, label), 201)


async def _labels_of_issue(call: GitHubCall) -> Answer:
    return call.page(call.issue.labels, lambda label: call.views.label(call.repo, label))


async def _label_events(call: GitHubCall) -> Answer:
    return call.page(call.issue.labellings, lambda one: call.views.labelling(call.repo, one))


async def _add_labels(call: GitHubCall) -> Answer:
    return _labelled(call, [label.name for label in call.issue.labels] + (bodies.names(call.body, "labels") or []))


async def _set_labels(call: GitHubCall) -> Answer:
    return _labelled(call, bodies.names(call.body, "labels") or [])


async def _drop_label(call: GitHubCall) -> Answer:
    name = str(call.path["label"]).lower()
    kept = [label.name for label in call.issue.labels if label.name.lower() != name]
    if len(kept) == len(call.issue.labels):
        raise Refusal(404, "Label does not exist")
    return _labelled(call, kept)


async def _drop_labels(call: GitHubCall) -> Answer:
    _labelled(call, [])
    return Answer(None, 204)


def _labelled(call: GitHubCall, names: Iterable[str]) -> Answer:
    writer, repo = _worker(call)
    issue = call.issue
    call.network.change_issue(repo, issue, writer, labels=list(names))
    return Answer([call.views.label(repo, label) for label in issue.labels])


# Comments


def _comment(call: GitHubCall) -> tuple[StoredIssue, StoredComment]:
    for issue in filter(None, call.repo.issues.values()):
        for comment in issue.comments:
            if comment.id == call.path["comment_id"]:
                return issue, comment
    raise not_found()


async def _get_comment(call: GitHubCall) -> Answer:
    return Answer(call.views.comment(call.repo, *_comment(call)))


async def _change_comment(call: GitHubCall) -> Answer:
    writer, (issue, comment) = call.writer, _comment(call)
    text = bodies.text(call.body, "body", required=True) or ""
    call.network.change_comment(call.repo, issue, comment, writer, text)
    return Answer(call.views.comment(call.repo, issue, comment))


async def _reactions(call: GitHubCall) -> Answer:
    found = call.issue.reactions if "number" in call.path else _comment(call)[1].reactions
    return call.page(found, call.views.reaction)


async def _react_to_comment(call: GitHubCall) -> Answer:
    _, comment = _comment(call)
    reaction, new = call.network.react(comment, call.writer, bodies.reaction(call.body))
    return Answer(call.views.reaction(reaction), 201 if new else 200)


async def _all_comments(call: GitHubCall) -> Answer:
    repo = call.repo
    found = [(issue, one) for issue in filter(None, repo.issues.values()) for one in issue.comments]
    found.sort(key=lambda pair: pair[1].id)
    return call.page(found, lambda pair: call.views.comment(repo, *pair))


_SCORE = {"score": 1.0}
_PEOPLE = frozenset({"author", "assignee", "commenter"})
_NOBODY = (
    "The listed users cannot be searched either because the users do not exist"
    " or you do not have permission to view the users."
)


async def _search_issues(call: GitHubCall) -> Answer:
    words, given = _query(call)
    if any(name in _PEOPLE and call.network.find(value) is None for name, value in given):
        why = {"message": _NOBODY, "resource": "Search", "field": "q", "code": "invalid"}
        raise Refusal(422, "Validation Failed", (why,))
    found = [
        (repo, issue)
        for repo in _seen_repositories(call)
        for issue in filter(None, repo.issues.values())
        if all(_holds(repo, issue, name, value) for name, value in given)
        and all(word in f"{issue.title} {issue.body or ''}".lower() for word in words)
    ]
    found.sort(key=lambda pair: (_when(pair[1], call), pair[1].id), reverse=call.query.get("order") != "asc")
    window = Window.of(call.query)
    shown = [{**call.views.issue(repo, issue), "body": issue.body or "", **_SCORE} for repo, issue in window.cut(found)]
    answer = _search_page(window, len(found), shown)
    answer.body["search_type"] = "lexical"
    return answer


async def _search_repositories(call: GitHubCall) -> Answer:
    words, given = _query(call)
    owners = {value.lower() for name, value in given if name in {"user", "org"}}
    found = [
        repo
        for repo in _seen_repositories(call)
        if (not owners or repo.owner.login.lower() in owners)
        and all(word in f"{repo.name} {repo.description}".lower() for word in words)
    ]
    window = Window.of(call.query)
    return _search_page(window, len(found), [{**call.views.repo(repo), **_SCORE} for repo in window.cut(found)])


def _search_page(window: Window, count: int, items: list[Json]) -> Answer:
    body = {"total_count": count, "incomplete_results": False, "items": items}
    return Answer(body, window=window, count=count)


def _query(call: GitHubCall) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words of the query, in lower case, and its qualifiers. Raises `Refusal`."""
    query = call.query.get("q", "").strip()
    if not query:
        raise Refusal(422, "Validation Failed", ({"resource": "Search", "field": "q", "code": "missing"},))
    words, given = [], []
    for part in query.split():
        name, colon, value = part.partition(":")
        if colon and value and name.lstrip("-").isalpha():
            given.append((name.lower(), value.strip('"')))
        else:
            words.append(part.strip('"').lower())
    return words, given


def _seen_repositories(call: GitHubCall) -> list[StoredRepo]:
    return [repo for repo in call.network.repos() if not repo.private or call.network.may_push(repo, call.viewer)]


def _holds(repo: StoredRepo, issue: StoredIssue, name: str, value: str) -> bool:
    """Return whether a qualifier matches; an unknown one matches everything."""
    wanted = value.lower()
    people = {
        "author": [issue.author],
        "assignee": issue.assignees,
        "commenter": [comment.author for comment in issue.comments],
    }
    if name in people:
        return wanted in {account.login.lower() for account in people[name]}
    values: dict[str, set[str]] = {
        "repo": {repo.full_name.lower()},
        "org": {repo.owner.login.lower()},
        "user": {repo.owner.login.lower()},
        "label": {label.name.lower() for label in issue.labels},
        "state": {issue.state},
        "is": {issue.state, *_TYPES[issue.is_pull]},
        "type": {*_TYPES[issue.is_pull]},
    }
    return name not in values or wanted in values[name]


_TYPES = {True: ("pr", "pull-request"), False: ("issue",)}


def _when(issue: StoredIssue, call: GitHubCall) -> datetime:
    return issue.updated_at if call.query.get("sort") == "updated" else issue.created_at


_ISSUE = "/issues/{number:int}"
_COMMENT = "/issues/comments/{comment_id:int}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "/labels": {"GET": _labels, "POST": _create_label},
    "/issues": {"GET": _list_issues, "POST": _open_issue},
    _ISSUE: {"GET": _issue, "PATCH": _change_issue},
    f"{_ISSUE}/comments": {"GET": _list_comments, "POST": _write_comment},
    f"{_ISSUE}/assignees": {"POST": _add_assignees, "DELETE": _drop_assignees},
    f"{_ISSUE}/reactions": {"GET": _reactions, "POST": _react},
    f"{_ISSUE}/labels": {"GET": _labels_of_issue, "POST": _add_labels, "PUT": _set_labels, "DELETE": _drop_labels},
    f"{_ISSUE}/events": {"GET": _label_events},
    f"{_ISSUE}/labels/{{label:path}}": {"DELETE": _drop_label},
    "/issues/comments": {"GET": _all_comments},
    _COMMENT: {"GET": _get_comment, "PATCH": _change_comment, "DELETE": _delete_comment},
    f"{_COMMENT}/reactions": {"GET": _reactions, "POST": _react_to_comment},
}
ELSEWHERE: dict[str, dict[str, Handler]] = {
    "/user": {"GET": _me},
    "/users/{login}": {"GET": _user},
    "/search/issues": {"GET": _search_issues},
    "/search/repositories": {"GET": _search_repositories},
}
