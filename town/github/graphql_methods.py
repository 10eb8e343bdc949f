"""The requests of GitHub's GraphQL API that the town answers: the merge queue, and the history of a text.

A document is not parsed. Its operation is recognised by the name of the field that it asks for, and the answer holds
only the fields that the document names.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from town.github import pulls
from town.github.notification_methods import Answer, GitHubCall, Handler
from town.github.pull_methods import leave_queue
from town.github.values import Json, Refusal, StoredComment, StoredEdit, StoredIssue, StoredPull, StoredRepo
from town.github.views import moment, node_id

_ENQUEUE = "enqueuePullRequest"
_WINDOW = re.compile(r"userContentEdits\(\s*(?P<end>first|last):\s*(?P<most>\$\w+|\d+)")
_QUEUE_NEEDS = "The pull request cannot be added to the queue"


async def _query(call: GitHubCall) -> Answer:
    if call.viewer is None:
        raise Refusal(401, "This endpoint requires you to be authenticated.")
    document, variables = call.body.get("query"), call.body.get("variables") or {}
    if not isinstance(document, str) or not isinstance(variables, Mapping):
        return _failed("A query attribute must be specified and must be a string.")
    if _ENQUEUE in document:
        return _enqueue(call, document, variables.get("input") or {})
    if "userContentEdits" in document:
        return _edits(call, document, variables)
    if "pullRequest(" in document:
        return await _pull_request(call, document, variables)
    return _failed("The town answers no such query.")


def _enqueue(call: GitHubCall, document: str, given: Json) -> Answer:
    found = _by_node(call, str(given.get("pullRequestId")))
    if found is None:
        told = f"Could not resolve to a node with the global id of '{given.get('pullRequestId')}'"
        return _failed(told, "NOT_FOUND", _ENQUEUE)
    repo, pull = found
    writer = call.writer
    if repo.queue_is_closed or not call.network.may_push(repo, writer):
        told = f"{writer.login} does not have the correct permissions to execute `EnqueuePullRequest`"
        return _failed(told, "FORBIDDEN", _ENQUEUE)
    if why := _why_not(repo, pull, given.get("expectedHeadOid")):
        return _failed(why, "UNPROCESSABLE", _ENQUEUE)
    pull.queued_at, pull.queued_by = call.network.clock.now(), writer
    entry = {
        "id": node_id("MergeQueueEntry", pull.issue.id),
        "position": len([one for one in repo.pulls.values() if one.queued_at]),
        "state": "QUEUED",
    }
    return Answer({"data": {_ENQUEUE: {"mergeQueueEntry": _named(entry, document)}}})


def _why_not(repo: StoredRepo, pull: StoredPull, head: object) -> str:
    """Return why a pull request cannot join the queue, in words like GitHub's; "" if it can."""
    if not repo.has_merge_queue:
        return f"{_QUEUE_NEEDS}: the base branch has no merge queue"
    if pull.queued_at:
        return "The pull request is already in the queue"
    if not pull.is_open or pull.draft:
        return f"{_QUEUE_NEEDS}: it is {'a draft' if pull.is_open else 'closed'}"
    return "" if head in {None, pull.head} else "The expected head oid does not match the head of the pull request"


async def _pull_request(call: GitHubCall, document: str, variables: Mapping[str, Any]) -> Answer:
    repo = call.network.repo(str(variables.get("owner")), str(variables.get("name")), call.viewer)
    pull = pulls.find(repo, int(variables.get("number") or 0))
    await leave_queue(_at(call, repo, pull))
    entry = {"id": node_id("MergeQueueEntry", pull.issue.id)} if pull.queued_at else None
    fields = {
        "id": node_id("PullRequest", pull.issue.id),
        "isInMergeQueue": pull.queued_at is not None,
        "isMergeQueueEnabled": repo.has_merge_queue,
        "merged": pull.merged_at is not None,
        "mergeQueueEntry": entry,
    }
    return Answer({"data": {"repository": {"pullRequest": _named(fields, document)}}})


def _edits(call: GitHubCall, document: str, variables: Mapping[str, Any]) -> Answer:
    node = str(variables.get("id"))
    found = next((one for name, one in _texts(call) if name == node), None)
    if found is None:
        return _failed(f"Could not resolve to a node with the global id of '{node}'", "NOT_FOUND", "node")
    asked = _WINDOW.search(document)
    if asked is None:
        return _failed(
            "You must provide a `first` or `last` value to properly paginate the `userContentEdits` connection."
        )
    most = int(variables.get(asked["most"].removeprefix("$"), 0) if asked["most"].startswith("$") else asked["most"])
    newest_first = found.edits[::-1]
    shown = newest_first[:most] if asked["end"] == "first" else newest_first[-most:]
    nodes = [_edit(one, document) for one in shown]
    edits = _named({"totalCount": len(found.edits), "nodes": nodes}, document)
    return Answer({"data": {"node": {"userContentEdits": edits}}})


def _edit(one: StoredEdit, document: str) -> dict[str, Any]:
    at = moment(one.at)
    fields = {
        "id": node_id("UserContentEdit", one.id),
        "createdAt": at,
        "updatedAt": at,
        "editedAt": at,
        "deletedAt": None,
        "diff": one.text,
        "editor": {"login": one.editor.login},
    }
    return _named(fields, document)


def _texts(call: GitHubCall) -> Iterator[tuple[str, StoredIssue | StoredComment]]:
    """Yield all texts that the account may see, with their ids in this API."""
    for repo in call.network.repos():
        for issue in filter(None, repo.issues.values() if _sees(call, repo) else ()):
            yield node_id("PullRequest" if issue.is_pull else "Issue", issue.id), issue
            for comment in issue.comments:
                yield node_id("IssueComment", comment.id), comment


def _sees(call: GitHubCall, repo: StoredRepo) -> bool:
    return not repo.private or call.network.may_push(repo, call.viewer)


def _by_node(call: GitHubCall, node: str) -> tuple[StoredRepo, StoredPull] | None:
    for repo in call.network.repos():
        for pull in repo.pulls.values():
            if node_id("PullRequest", pull.issue.id) == node and _sees(call, repo):
                return repo, pull
    return None


def _at(call: GitHubCall, repo: StoredRepo, pull: StoredPull) -> GitHubCall:
    return replace(call, path={"owner": repo.owner.login, "repo": repo.name, "number": pull.number})


def _named(fields: Mapping[str, Any], document: str) -> dict[str, Any]:
    words = set(document.replace("{", " ").replace("}", " ").split())
    return {name: value for name, value in fields.items() if name in words}


def _failed(message: str, kind: str = "", field: str = "") -> Answer:
    error: Json = {"message": message}
    if not field:
        return Answer({"errors": [error]})
    where = [{"line": 1, "column": 1}]
    return Answer({"data": {field: None}, "errors": [{"type": kind, "path": [field], "locations": where, **error}]})


ELSEWHERE: dict[str, dict[str, Handler]] = {"/graphql": {"POST": _query}}
