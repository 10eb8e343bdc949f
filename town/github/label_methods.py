"""Labels, and operations on single comments: one function for each operation of the API."""

from __future__ import annotations

from collections.abc import Iterable

from town.github import bodies
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.values import (
    GitHubAccount,
    GitHubLabel,
    Refusal,
    StoredComment,
    StoredIssue,
    StoredRepo,
    forbidden,
    not_found,
    unprocessable,
)


def _worker(call: GitHubCall) -> tuple[GitHubAccount, StoredRepo]:
    """Return the caller and the repository, if the caller may label there. Raises `Refusal`."""
    writer, repo = call.writer, call.repo
    call.network.check_writable(repo)
    if not call.network.may_push(repo, writer):
        raise forbidden()
    return writer, repo


async def _create(call: GitHubCall) -> Answer:
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


async def _of_issue(call: GitHubCall) -> Answer:
    return call.page(call.issue.labels, lambda label: call.views.label(call.repo, label))


async def _events(call: GitHubCall) -> Answer:
    return call.page(call.issue.labellings, lambda one: call.views.labelling(call.repo, one))


async def _add(call: GitHubCall) -> Answer:
    return _labelled(call, [label.name for label in call.issue.labels] + (bodies.names(call.body, "labels") or []))


async def _set(call: GitHubCall) -> Answer:
    return _labelled(call, bodies.names(call.body, "labels") or [])


async def _drop(call: GitHubCall) -> Answer:
    name = str(call.path["label"]).lower()
    kept = [label.name for label in call.issue.labels if label.name.lower() != name]
    if len(kept) == len(call.issue.labels):
        raise Refusal(404, "Label does not exist")
    return _labelled(call, kept)


async def _drop_all(call: GitHubCall) -> Answer:
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


_ISSUE = "/issues/{number:int}"
_COMMENT = "/issues/comments/{comment_id:int}"
IN_REPO: dict[str, dict[str, Handler]] = {
    "/labels": {"POST": _create},
    f"{_ISSUE}/labels": {"GET": _of_issue, "POST": _add, "PUT": _set, "DELETE": _drop_all},
    f"{_ISSUE}/events": {"GET": _events},
    f"{_ISSUE}/labels/{{label:path}}": {"DELETE": _drop},
    f"{_ISSUE}/reactions": {"GET": _reactions},
    "/issues/comments": {"GET": _all_comments},
    _COMMENT: {"GET": _get_comment, "PATCH": _change_comment},
    f"{_COMMENT}/reactions": {"GET": _reactions, "POST": _react_to_comment},
}
