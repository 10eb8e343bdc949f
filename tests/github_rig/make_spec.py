"""GitHub's published description, reduced to what our adapter requests and the town serves, and adapted to Prism.

Of each response that offers `application/json` only that is kept, as Prism can write no other. Links in example headers
are dropped, as a client would follow them. `nullable: true` without a type (in POST and PATCH of issues, among others)
makes Prism's validator stop silently and judge nothing: there, null becomes an explicit alternative. Files in folders,
and the root, get paths of their own. The payload of an event may match any of its alternatives: one is the empty
object, so that no event could match exactly one.
Everything else stays as GitHub publishes it.
"""

import json
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parent / "node_modules/@octokit/openapi/generated/api.github.com.json"
PATHS = (
    "/user",
    "/rate_limit",
    "/users/{username}",
    "/users/{username}/events/public",
    "/repos/{owner}/{repo}",
    "/repos/{owner}/{repo}/events",
    "/repos/{owner}/{repo}/issues",
    "/repos/{owner}/{repo}/issues/{issue_number}",
    "/repos/{owner}/{repo}/issues/{issue_number}/assignees",
    "/repos/{owner}/{repo}/issues/{issue_number}/comments",
    "/repos/{owner}/{repo}/issues/{issue_number}/events",
    "/repos/{owner}/{repo}/issues/{issue_number}/reactions",
    "/repos/{owner}/{repo}/issues/comments/{comment_id}",
    "/repos/{owner}/{repo}/labels",
    "/repos/{owner}/{repo}/branches",
    "/repos/{owner}/{repo}/branches/{branch}",
    "/repos/{owner}/{repo}/commits",
    "/repos/{owner}/{repo}/commits/{ref}",
    "/repos/{owner}/{repo}/commits/{ref}/status",
    "/repos/{owner}/{repo}/commits/{ref}/statuses",
    "/repos/{owner}/{repo}/commits/{ref}/check-runs",
    "/repos/{owner}/{repo}/statuses/{sha}",
    "/repos/{owner}/{repo}/check-runs",
    "/repos/{owner}/{repo}/compare/{basehead}",
    "/repos/{owner}/{repo}/contents/{path}",
    "/repos/{owner}/{repo}/git/blobs/{file_sha}",
    "/repos/{owner}/{repo}/git/commits",
    "/repos/{owner}/{repo}/git/commits/{commit_sha}",
    "/repos/{owner}/{repo}/git/matching-refs/{ref}",
    "/repos/{owner}/{repo}/git/ref/{ref}",
    "/repos/{owner}/{repo}/git/refs",
    "/repos/{owner}/{repo}/git/refs/{ref}",
    "/repos/{owner}/{repo}/git/trees/{tree_sha}",
    "/repos/{owner}/{repo}/pulls",
    "/repos/{owner}/{repo}/pulls/{pull_number}",
    "/repos/{owner}/{repo}/pulls/comments/{comment_id}",
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments",
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies",
    "/repos/{owner}/{repo}/pulls/{pull_number}/commits",
    "/repos/{owner}/{repo}/pulls/{pull_number}/files",
    "/repos/{owner}/{repo}/pulls/{pull_number}/merge",
    "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews",
    "/repos/{owner}/{repo}/collaborators",
    "/repos/{template_owner}/{template_repo}/generate",
    "/orgs/{org}/repos",
    "/user/orgs",
    "/users/{username}/orgs",
    "/user/following/{username}",
    "/user/starred/{owner}/{repo}",
    "/notifications",
    "/notifications/threads/{thread_id}",
    "/repos/{owner}/{repo}/notifications",
    "/search/issues",
    "/orgs/{org}",
    "/orgs/{org}/members",
    "/user/repos",
    "/users/{username}/repos",
    "/user/repository_invitations",
    "/user/repository_invitations/{invitation_id}",
    "/repos/{owner}/{repo}/collaborators/{username}",
    "/repos/{owner}/{repo}/collaborators/{username}/permission",
    "/repos/{owner}/{repo}/issues/comments",
    "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions",
    "/repos/{owner}/{repo}/issues/{issue_number}/labels",
    "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}",
    "/search/repositories",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/comments",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/dismissals",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/events",
    "/repos/{owner}/{repo}/pulls/{pull_number}/update-branch",
)
_CONTENTS = "/repos/{owner}/{repo}/contents"
_NULL = {"enum": [None]}


def make_spec(address: str) -> str:
    """Return the description of a GitHub that answers at `address`, as JSON."""
    spec = json.loads(PUBLISHED.read_text(encoding="utf-8").replace("https://api.github.com", address))
    spec["paths"] = {path: spec["paths"][path] for path in PATHS}
    spec["paths"] |= _contents_as_sent(spec["paths"][f"{_CONTENTS}/{{path}}"])
    for operations in spec["paths"].values():
        for operation in operations.values():
            if isinstance(operation, dict):
                for response in operation.get("responses", {}).values():
                    _keep_json(response)
    for response in spec["components"]["responses"].values():
        _keep_json(response)
    payload = spec["components"]["schemas"]["event"]["properties"]["payload"]
    payload["anyOf"] = payload.pop("oneOf")
    _spell_out_null(spec)
    return json.dumps(spec)


def _contents_as_sent(described: dict[str, Any]) -> dict[str, Any]:
    """Return the paths of files that GitHub takes and Prism's `{path}` does not: the root, and paths with slashes."""
    root = json.loads(json.dumps(described["get"]))
    root["parameters"] = [one for one in root["parameters"] if one.get("name") != "path"]
    nested = json.loads(json.dumps(described))
    for operation in nested.values():
        folder = {"name": "folder", "in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [folder, *operation["parameters"]]
    return {f"{_CONTENTS}/": {"get": root}, f"{_CONTENTS}/{{folder}}/{{path}}": nested}


def _keep_json(response: dict[str, Any]) -> None:
    headers = response.get("headers", {})
    for name in [name for name in headers if name.lower() == "link"]:
        del headers[name]
    content = response.get("content", {})
    if "application/json" in content:
        response["content"] = {"application/json": content["application/json"]}


def _spell_out_null(node: object) -> None:
    if isinstance(node, list):
        for child in node:
            _spell_out_null(child)
    if not isinstance(node, dict):
        return
    if node.get("nullable") is True and "type" not in node:
        del node["nullable"]
        _allow_null(node)
    for name, child in list(node.items()):
        if name not in {"example", "examples"}:
            _spell_out_null(child)


def _allow_null(schema: dict[str, Any]) -> None:
    for name in ("oneOf", "anyOf"):
        if name in schema:
            schema[name] = [*schema[name], _NULL]
            return
    inner = {name: schema.pop(name) for name in ("allOf", "$ref") if name in schema}
    if inner:
        schema["anyOf"] = [inner, _NULL]
