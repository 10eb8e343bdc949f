"""What PyGithub is asked to do, one request each (one per page for lists). Blocks where it waits for an answer.

For files, refs, places and notifications PyGithub's requester carries the requests: its objects would encode a path as
a whole, follow a list by themselves, or hide the headers.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from adapters.github import convert, sdk
from adapters.github.history import BodyEdit, Labelling
from adapters.github.types import (
    PAGE,
    Account,
    Branch,
    Comment,
    ContentEntry,
    FileChange,
    FileContent,
    GitCommit,
    GitHubNotification,
    GitHubPerson,
    GitRef,
    Issue,
    Label,
    LineComment,
    Merge,
    NotificationPoll,
    Organization,
    PullFile,
    PullRequest,
    QueueStanding,
    Repo,
    Repository,
    Review,
    ReviewComment,
    Tree,
    first,
    in_segments,
    repo_path,
)
from adapters.web.client import Failure
from common.result import Err

MAX_NOTIFICATION_PAGES = 20
NOTIFICATIONS_PER_PAGE = 50
USUAL_POLL_S = 60
_NEXT = re.compile(r'rel="next"')
_ETAG = ("W/", '"')

_LABEL_EVENTS = frozenset({"labeled", "unlabeled"})

Json = dict[str, Any]


class _Over:
    def __init__(self, requester: sdk.Requester) -> None:
        self._requester = requester

    def _get(self, url: str, parameters: Json | None = None) -> Any:  # noqa: ANN401 - JSON
        return self._requester.requestJsonAndCheck("GET", url, parameters=parameters)[1]

    def _send(self, method: str, url: str, body: Json | None = None) -> Any:  # noqa: ANN401 - JSON
        return self._requester.requestJsonAndCheck(method, url, input=body)[1]

    def _pages(self, url: str, parameters: Json, *, items: str = "") -> Iterator[Json]:
        """All of a list, page by page; `items` is the field that holds it where the answer is an object."""
        page = 1
        while True:
            asked = {**parameters, "per_page": parameters.get("per_page", PAGE), "page": page}
            headers, data = self._requester.requestJsonAndCheck("GET", url, parameters=asked)
            yield from data[items] if items else data
            if not has_next(headers):
                return
            page += 1


class ContentOperations(_Over):
    """Files, by the interface of contents."""

    def list(self, repo: Repo, path: str, *, ref: str) -> tuple[ContentEntry, ...]:
        found = self._get(_contents(repo, path), {"ref": ref} if ref else None)
        return tuple(convert.content_entry(one) for one in (found if isinstance(found, list) else [found]))

    def tree(self, repo: Repo, ref: str) -> Tree:
        found = self._get(f"{repo_path(repo)}/git/trees/{quote(ref, safe='')}", {"recursive": "1"})
        files = (one for one in found["tree"] if one["type"] != "tree")
        return Tree(tuple(map(convert.tree_entry, files)), found.get("truncated") is True)

    def read(self, repo: Repo, path: str, *, ref: str, max_chars: int) -> FileContent:
        found = self._get(_contents(repo, path), {"ref": ref} if ref else None)
        if isinstance(found, list) or found["type"] != "file":
            raise Failure(Err(f"could not read {path}: it is no file", kind="invalid"))
        size, sha = int(found["size"]), str(found["sha"])
        if found.get("encoding") != "base64":
            return FileContent(path, "", sha, size, truncated=size > 0)
        content = b64decode(found["content"])
        if b"\0" in content:
            raise Failure(Err(f"could not read {path}: it is no text", kind="invalid"))
        text = content.decode("utf-8", errors="replace")
        return FileContent(path, text[:max_chars], sha, size, truncated=len(text) > max_chars)

    def write(self, repo: Repo, path: str, *, text: str, message: str, branch: str, sha: str) -> FileChange:
        body: Json = {"message": message, "content": b64encode(text.encode()).decode()}
        body |= {name: value for name, value in (("branch", branch), ("sha", sha)) if value}
        return convert.file_change(path, self._send("PUT", _contents(repo, path), body))

    def delete(self, repo: Repo, path: str, *, message: str, branch: str, sha: str) -> FileChange:
        body: Json = {"message": message, "sha": sha, **({"branch": branch} if branch else {})}
        return convert.file_change(path, self._send("DELETE", _contents(repo, path), body))


class RefOperations(_Over):
    """Branches, and the refs by which they are made and taken away."""

    def branches(self, repo: Repo, *, limit: int) -> tuple[Branch, ...]:
        return tuple(convert.branch(one) for one in first(limit, self._pages(f"{repo_path(repo)}/branches", {})))

    def get(self, repo: Repo, branch: str) -> GitRef:
        return convert.git_ref(self._get(f"{repo_path(repo)}/git/ref/{_heads(branch)}"))

    def matching(self, repo: Repo, prefix: str, *, limit: int) -> tuple[GitRef, ...]:
        found = self._pages(f"{repo_path(repo)}/git/matching-refs/{_heads(prefix)}", {})
        return tuple(convert.git_ref(one) for one in first(limit, found))

    def create(self, repo: Repo, branch: str, sha: str) -> GitRef:
        body = {"ref": f"refs/heads/{branch}", "sha": sha}
        return convert.git_ref(self._send("POST", f"{repo_path(repo)}/git/refs", body))

    def commit(self, repo: Repo, sha: str) -> GitCommit:
        return convert.git_commit(self._get(f"{repo_path(repo)}/git/commits/{sha}"))

    def create_commit(self, repo: Repo, commit: GitCommit, *, author: Json) -> GitCommit:
        body = {
            "message": commit.message,
            "tree": commit.tree,
            "parents": [*commit.parents],
            "author": author,
        }
        return convert.git_commit(self._send("POST", f"{repo_path(repo)}/git/commits", body))

    def delete(self, repo: Repo, branch: str) -> None:
        self._send("DELETE", f"{repo_path(repo)}/git/refs/{_heads(branch)}")


class PlaceOperations(_Over):
    """Repositories, organisations, labels, and what an account follows or stars."""

    def of_organization(self, org: str, *, kind: str, sort: str, direction: str, limit: int) -> tuple[Repository, ...]:
        asked = {"type": kind, "sort": sort, "direction": direction}
        found = self._pages(f"/orgs/{quote(org, safe='')}/repos", asked)
        return tuple(self._repository(one) for one in first(limit, found))

    def organizations(self, login: str, *, limit: int) -> tuple[Organization, ...]:
        url = f"/users/{quote(login, safe='')}/orgs" if login else "/user/orgs"
        return tuple(convert.organization(one) for one in first(limit, self._pages(url, {})))

    def collaborators(self, repo: Repo, *, limit: int) -> tuple[str, ...]:
        found = self._pages(f"{repo_path(repo)}/collaborators", {})
        return tuple(str(one["login"]) for one in first(limit, found))

    def pushers(self, repo: Repo, *, limit: int) -> tuple[Account, ...]:
        found = first(limit, self._pages(f"{repo_path(repo)}/collaborators", {}))
        return tuple(convert.account(one) for one in found if one.get("permissions", {}).get("push") is True)

    def labellings(self, repo: Repo, number: int, *, limit: int) -> tuple[Labelling, ...]:
        found = self._pages(f"{repo_path(repo)}/issues/{number}/events", {})
        told = (one for one in first(limit, found) if one.get("event") in _LABEL_EVENTS)
        return tuple(convert.labelling(one) for one in told)

    def generate(self, template: Repo, *, owner: str, name: str, description: str, private: bool) -> Repository:
        body = {
            "owner": owner,
            "name": name,
            "description": description,
            "include_all_branches": False,
            "private": private,
        }
        return self._repository(self._send("POST", f"{repo_path(template)}/generate", body))

    def labels(self, repo: Repo, *, limit: int) -> tuple[Label, ...]:
        return tuple(convert.label(one) for one in first(limit, self._pages(f"{repo_path(repo)}/labels", {})))

    def create_label(self, repo: Repo, label: Label) -> Label:
        body = {"name": label.name, "color": label.color, "description": label.description}
        return convert.label(self._send("POST", f"{repo_path(repo)}/labels", body))

    def follow(self, login: str) -> None:
        self._send("PUT", f"/user/following/{quote(login, safe='')}")

    def unfollow(self, login: str) -> None:
        self._send("DELETE", f"/user/following/{quote(login, safe='')}")

    def star(self, repo: Repo) -> None:
        self._send("PUT", f"/user/starred/{repo_path(repo).removeprefix('/repos/')}")

    def search_issues(self, query: str, *, limit: int) -> tuple[Issue, ...]:
        found = self._pages("/search/issues", {"q": query}, items="items")
        whole = (sdk.Issue(self._requester, attributes=one, completed=True) for one in first(limit, found))
        return tuple(convert.issue(one) for one in whole)

    def search_repositories(self, query: str, *, limit: int) -> tuple[Repository, ...]:
        found = self._pages("/search/repositories", {"q": query}, items="items")
        return tuple(self._repository(one) for one in first(limit, found))

    def _repository(self, found: Json) -> Repository:
        return convert.repository(sdk.Repository(self._requester, attributes=found, completed=True))


class NotificationOperations(_Over):
    """Notifications of the account."""

    def poll(self, *, unread_only: bool, participating: bool, since: str, marker: str) -> NotificationPoll:
        asked: Json = {"per_page": NOTIFICATIONS_PER_PAGE, "all": _flag(not unread_only)}
        asked |= {"participating": _flag(participating), **({"since": since} if since else {})}
        found: dict[str, GitHubNotification] = {}
        interval, newest, complete = USUAL_POLL_S, marker, False
        for page in range(1, MAX_NOTIFICATION_PAGES + 1):
            condition = conditional(marker) if page == 1 else {}
            headers, data = self._requester.requestJsonAndCheck(
                "GET", "/notifications", parameters={**asked, "page": page}, headers=condition
            )
            if page == 1:
                told = str(headers.get("x-poll-interval", ""))
                interval = int(told) if told.isdecimal() else USUAL_POLL_S
                newest = str(headers.get("last-modified") or headers.get("etag") or "")
                if data is None:
                    return NotificationPoll((), changed=False, poll_interval_s=interval, marker=newest or marker)
            for one in map(convert.notification, data):
                found.setdefault(one.id, one)
            if complete := not has_next(headers):
                break
        return NotificationPoll(
            tuple(found.values()),
            changed=True,
            poll_interval_s=interval,
            complete=complete,
            marker=newest if complete else "",
        )

    def mark_read(self, thread_id: str) -> None:
        self._send("PATCH", f"/notifications/threads/{quote(thread_id, safe='')}")


class PullOperations(_Over):
    """Pull requests, their reviews and their merges."""

    def get(self, repo: Repo, number: int) -> PullRequest:
        return convert.pull_request(self._pull(repo, number).complete())

    def list(
        self, repo: Repo, *, state: str, head: str, base: str, sort: str, direction: str, limit: int
    ) -> tuple[PullRequest, ...]:
        found = sdk.Repository(self._requester, url=repo_path(repo)).get_pulls(
            state=state,
            sort=sort,
            direction=direction,
            head=head or sdk.NotSet,
            base=base or sdk.NotSet,
        )
        return tuple(first(limit, map(convert.pull_request, found)))

    def create(self, repo: Repo, *, title: str, body: str, head: str, base: str, draft: bool) -> PullRequest:
        made = sdk.Repository(self._requester, url=repo_path(repo)).create_pull(
            base, head, title=title, body=body, draft=draft
        )
        return convert.pull_request(made)

    def update(self, repo: Repo, number: int, *, title: str, body: str, state: str | None) -> PullRequest:
        pull = self._pull(repo, number)
        pull.edit(title=title or sdk.NotSet, body=body or sdk.NotSet, state=state or sdk.NotSet)
        return convert.pull_request(pull)

    def merge(self, repo: Repo, number: int, *, method: str, title: str, message: str, sha: str) -> Merge:
        done = self._pull(repo, number).merge(
            commit_message=message or sdk.NotSet,
            commit_title=title or sdk.NotSet,
            merge_method=method,
            sha=sha or sdk.NotSet,
        )
        return convert.merge(done)

    def enqueue(self, repo: Repo, number: int, *, sha: str) -> None:
        given = {"pullRequestId": self._pull(repo, number).complete().node_id}
        given |= {"expectedHeadOid": sha} if sha else {}
        self._requester.graphql_named_mutation("enqueuePullRequest", given, "mergeQueueEntry { id }")

    def queue(self, repo: Repo, number: int) -> QueueStanding:
        named = {"owner": repo.owner, "name": repo.name, "number": number}
        _, answer = self._requester.graphql_query(_QUEUED, named)
        pull = answer["data"]["repository"]["pullRequest"]
        if pull["isInMergeQueue"] or pull["merged"]:
            return "in"
        return "out" if pull["isMergeQueueEnabled"] else "none"

    def update_branch(self, repo: Repo, number: int, *, sha: str) -> None:
        # NOTE(self): PyGithub's own takes any answer but 202 for a False that does not say why.
        url = f"{repo_path(repo)}/pulls/{number}/update-branch"
        self._requester.requestJsonAndCheck("PUT", url, input={"expected_head_sha": sha})

    def files(self, repo: Repo, number: int, *, limit: int) -> tuple[PullFile, ...]:
        return tuple(convert.pull_file(one) for one in first(limit, self._pull(repo, number).get_files()))

    def changed(self, repo: Repo, base: str, head: str) -> tuple[PullFile, ...]:
        compared = sdk.Repository(self._requester, url=repo_path(repo)).compare(base, head)
        return tuple(convert.pull_file(one) for one in compared.files)

    def reviews(self, repo: Repo, number: int, *, limit: int) -> tuple[Review, ...]:
        return tuple(convert.review(one) for one in first(limit, self._pull(repo, number).get_reviews()))

    def review_comments(self, repo: Repo, number: int, *, limit: int) -> tuple[ReviewComment, ...]:
        found = self._pull(repo, number).get_review_comments(sort="created", direction="desc")
        return tuple(convert.review_comment(one) for one in first(limit, found))[::-1]

    def answer_line(self, repo: Repo, number: int, comment_id: int, body: str) -> Comment:
        url = f"{repo_path(repo)}/pulls/{number}/comments/{comment_id}/replies"
        headers, data = self._requester.requestJsonAndCheck("POST", url, input={"body": body})
        return convert.comment(sdk.PullRequestComment(self._requester, headers, data, completed=True))

    def delete_line_comment(self, repo: Repo, comment_id: int) -> None:
        self._requester.requestJsonAndCheck("DELETE", f"{repo_path(repo)}/pulls/comments/{comment_id}")

    def create_review(
        self, repo: Repo, number: int, *, event: str, body: str, commit_id: str, comments: tuple[LineComment, ...]
    ) -> Review:
        commit = sdk.Commit(self._requester, attributes={"sha": commit_id}, completed=True) if commit_id else sdk.NotSet
        made = self._pull(repo, number).create_review(
            commit=commit,
            body=body or sdk.NotSet,
            event=event,
            comments=[{"path": one.path, "line": one.line, "side": "RIGHT", "body": one.body} for one in comments],
        )
        return convert.review(made)

    def request_reviewers(self, repo: Repo, number: int, reviewers: tuple[str, ...]) -> PullRequest:
        url = f"{repo_path(repo)}/pulls/{number}/requested_reviewers"
        headers, data = self._requester.requestJsonAndCheck("POST", url, input={"reviewers": [*reviewers]})
        return convert.pull_request(sdk.PullRequest(self._requester, headers, data, completed=True))

    def _pull(self, repo: Repo, number: int) -> sdk.PullRequest:
        return sdk.PullRequest(self._requester, url=f"{repo_path(repo)}/pulls/{number}")


def has_next(headers: Json) -> bool:
    """Whether an answer's `Link` names a next page."""
    return bool(_NEXT.search(str(headers.get("link", ""))))


def conditional(marker: str) -> dict[str, str]:
    """The header that asks for nothing unless something changed since the answer that gave `marker`."""
    if not marker:
        return {}
    return {"If-None-Match" if marker.startswith(_ETAG) else "If-Modified-Since": marker}


def _contents(repo: Repo, path: str) -> str:
    return f"{repo_path(repo)}/contents/{in_segments(path)}"


def _heads(branch: str) -> str:
    """A ref in an address: GitHub takes its slashes encoded."""
    return quote(f"heads/{branch}", safe="")


def _flag(value: bool) -> str:  # noqa: FBT001 - a value, not an option
    return "true" if value else "false"


_EDITS = """query Edits($id: ID!, $most: Int!) {
  node(id: $id) { ... on Comment { userContentEdits(first: $most) { nodes { diff editedAt editor { login } } } } }
}"""
_MOST_EDITS = 20
_QUEUED = """query Queued($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isMergeQueueEnabled isInMergeQueue merged } }
}"""


class Operations:
    """The operations, over one of PyGithub's requesters."""

    def __init__(self, requester: sdk.Requester) -> None:
        self._requester = requester
        self.pulls = PullOperations(requester)
        self.contents = ContentOperations(requester)
        self.refs = RefOperations(requester)
        self.places = PlaceOperations(requester)
        self.notifications = NotificationOperations(requester)

    def create_issue(
        self, repo: Repo, title: str, body: str, *, labels: Sequence[str], assignees: Sequence[str]
    ) -> Issue:
        made = self._repository(repo).create_issue(
            title, body=body, labels=list(labels) or sdk.NotSet, assignees=list(assignees) or sdk.NotSet
        )
        return convert.issue(made)

    def list_issues(
        self,
        repo: Repo,
        *,
        state: str,
        creator: str,
        labels: Sequence[str],
        since: datetime | None,
        limit: int,
    ) -> tuple[Issue, ...]:
        found = self._repository(repo).get_issues(
            state=state,
            sort="created",
            direction="desc",
            creator=self._user(creator) if creator else sdk.NotSet,
            labels=list(labels) or sdk.NotSet,
            since=since or sdk.NotSet,
        )
        return tuple(convert.issue(issue) for issue in first(limit, found))

    def get_issue(self, repo: Repo, number: int) -> Issue:
        return convert.issue(self._issue(repo, number).complete())

    def update_issue(
        self,
        repo: Repo,
        number: int,
        *,
        title: str,
        body: str,
        state: str | None,
        labels: Sequence[str] | None,
        assignees: Sequence[str] | None,
    ) -> Issue:
        issue = self._issue(repo, number)
        issue.edit(
            title=title or sdk.NotSet,
            body=body or sdk.NotSet,
            state=state or sdk.NotSet,
            labels=sdk.NotSet if labels is None else list(labels),
            assignees=sdk.NotSet if assignees is None else list(assignees),
        )
        return convert.issue(issue)

    def list_comments(self, repo: Repo, number: int, *, since: datetime | None, limit: int) -> tuple[Comment, ...]:
        found = self._issue(repo, number).get_comments(since=since or sdk.NotSet)
        return tuple(convert.comment(comment) for comment in first(limit, found))

    def create_comment(self, repo: Repo, number: int, body: str) -> Comment:
        return convert.comment(self._issue(repo, number).create_comment(body))

    def get_comment(self, repo: Repo, comment_id: int) -> Comment:
        url = f"{repo_path(repo)}/issues/comments/{comment_id}"
        return convert.comment(sdk.IssueComment(self._requester, url=url).complete())

    def edits(self, node_id: str) -> tuple[BodyEdit, ...]:
        _, answer = self._requester.graphql_query(_EDITS, {"id": node_id, "most": _MOST_EDITS})
        found = answer["data"]["node"]["userContentEdits"]["nodes"]
        # NOTE(self): the field is called `diff`, and holds the whole text of the version.
        return tuple(BodyEdit(one["diff"], (one["editor"] or {}).get("login", ""), one["editedAt"]) for one in found)

    def edit_comment(self, repo: Repo, comment_id: int, body: str) -> Comment:
        url = f"{repo_path(repo)}/issues/comments/{comment_id}"
        comment = sdk.IssueComment(self._requester, url=url)
        comment.edit(body)
        return convert.comment(comment)

    def delete_comment(self, repo: Repo, comment_id: int) -> None:
        url = f"{repo_path(repo)}/issues/comments/{comment_id}"
        sdk.IssueComment(self._requester, url=url).delete()

    def add_reaction(self, repo: Repo, number: int, reaction: str) -> int:
        return convert.number(self._issue(repo, number).create_reaction(reaction).id)

    def add_assignees(self, repo: Repo, number: int, logins: Sequence[str]) -> Issue:
        issue = self._issue(repo, number)
        issue.add_to_assignees(*logins)
        return convert.issue(issue)

    def remove_assignee(self, repo: Repo, number: int, login: str) -> Issue:
        issue = self._issue(repo, number)
        issue.remove_from_assignees(login)
        return convert.issue(issue)

    def add_labels(self, repo: Repo, number: int, labels: Sequence[str]) -> tuple[str, ...]:
        url = f"{repo_path(repo)}/issues/{number}/labels"
        _, data = self._requester.requestJsonAndCheck("POST", url, input={"labels": [*labels]})
        return tuple(str(one["name"]) for one in data)

    def remove_label(self, repo: Repo, number: int, label: str) -> None:
        url = f"{repo_path(repo)}/issues/{number}/labels/{quote(label, safe='')}"
        self._requester.requestJsonAndCheck("DELETE", url)

    def get_repository(self, repo: Repo) -> Repository:
        return convert.repository(self._repository(repo).complete())

    def get_user(self, login: str) -> GitHubPerson:
        return convert.person(sdk.NamedUser(self._requester, url=f"/users/{quote(login, safe='')}").complete())

    def _repository(self, repo: Repo) -> sdk.Repository:
        return sdk.Repository(self._requester, url=repo_path(repo))

    def _user(self, login: str) -> sdk.NamedUser:
        return sdk.NamedUser(self._requester, attributes={"login": login}, completed=True)

    def _issue(self, repo: Repo, number: int) -> sdk.Issue:
        return sdk.Issue(self._requester, url=f"{repo_path(repo)}/issues/{number}")
