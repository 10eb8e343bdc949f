"""Search for issues and repositories by words and the most common qualifiers."""

from __future__ import annotations

from datetime import datetime

from town.github.bodies import Window
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.values import Json, Refusal, StoredIssue, StoredRepo

_SCORE = {"score": 1.0}
_PEOPLE = frozenset({"author", "assignee", "commenter"})
_NOBODY = (
    "The listed users cannot be searched either because the users do not exist"
    " or you do not have permission to view the users."
)


async def _issues(call: GitHubCall) -> Answer:
    words, given = _query(call)
    if any(name in _PEOPLE and call.network.find(value) is None for name, value in given):
        why = {"message": _NOBODY, "resource": "Search", "field": "q", "code": "invalid"}
        raise Refusal(422, "Validation Failed", (why,))
    found = [
        (repo, issue)
        for repo in _seen(call)
        for issue in filter(None, repo.issues.values())
        if all(_holds(repo, issue, name, value) for name, value in given)
        and all(word in f"{issue.title} {issue.body or ''}".lower() for word in words)
    ]
    found.sort(key=lambda pair: (_when(pair[1], call), pair[1].id), reverse=call.query.get("order") != "asc")
    window = Window.of(call.query)
    shown = [{**call.views.issue(repo, issue), "body": issue.body or "", **_SCORE} for repo, issue in window.cut(found)]
    answer = _page(window, len(found), shown)
    answer.body["search_type"] = "lexical"
    return answer


async def _repositories(call: GitHubCall) -> Answer:
    words, given = _query(call)
    owners = {value.lower() for name, value in given if name in {"user", "org"}}
    found = [
        repo
        for repo in _seen(call)
        if (not owners or repo.owner.login.lower() in owners)
        and all(word in f"{repo.name} {repo.description}".lower() for word in words)
    ]
    window = Window.of(call.query)
    return _page(window, len(found), [{**call.views.repo(repo), **_SCORE} for repo in window.cut(found)])


def _page(window: Window, count: int, items: list[Json]) -> Answer:
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


def _seen(call: GitHubCall) -> list[StoredRepo]:
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


ELSEWHERE: dict[str, dict[str, Handler]] = {
    "/search/issues": {"GET": _issues},
    "/search/repositories": {"GET": _repositories},
}
