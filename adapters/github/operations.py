"""What PyGithub is asked to do, one request each (one per page for lists). Runs in a thread and blocks there.

Every object is made by its address, so that no method fetches it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from adapters.github import convert, sdk
from adapters.github.code_operations import ContentOperations, NotificationOperations, PlaceOperations, RefOperations
from adapters.github.history import BodyEdit
from adapters.github.people import GitHubPerson
from adapters.github.pull_operations import PullOperations
from adapters.github.texts import first, repo_path
from adapters.github.types import Comment, Issue, Repo, Repository

_EDITS = """query Edits($id: ID!, $most: Int!) {
  node(id: $id) { ... on Comment { userContentEdits(first: $most) { nodes { diff editedAt editor { login } } } } }
}"""
_MOST_EDITS = 20


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
