"""The two requests of GitHub's other interface that the town answers: joining a merge queue, and who stands in one.

A document is not parsed. Its operation is told by the name of the field that it asks for, and of what that has only the
fields are answered that the document names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from town.github import pulls
from town.github.call import Answer, GitHubCall, Handler
from town.github.pull_methods import leave_queue
from town.github.values import Json, Refusal, StoredPull, StoredRepo
from town.github.views import node_id

_ENQUEUE = "enqueuePullRequest"
_QUEUE_NEEDS = "The pull request cannot be added to the queue"


async def _query(call: GitHubCall) -> Answer:
    if call.viewer is None:
        raise Refusal(401, "This endpoint requires you to be authenticated.")
    document, variables = call.body.get("query"), call.body.get("variables") or {}
    if not isinstance(document, str) or not isinstance(variables, Mapping):
        return _failed("A query attribute must be specified and must be a string.")
    if _ENQUEUE in document:
        return _enqueue(call, document, variables.get("input") or {})
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
