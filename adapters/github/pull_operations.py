"""What PyGithub is asked to do with pull requests, one request each (one per page for lists). Blocks in a thread."""

from __future__ import annotations

from adapters.github import convert_code as convert
from adapters.github import sdk
from adapters.github.convert import comment
from adapters.github.line_comments import ReviewComment
from adapters.github.types import (
    Comment,
    LineComment,
    Merge,
    PullFile,
    PullRequest,
    QueueStanding,
    Repo,
    Review,
    first,
    repo_path,
)

_QUEUED = """query Queued($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isMergeQueueEnabled isInMergeQueue merged } }
}"""


class PullOperations:
    """The operations, over one of PyGithub's requesters."""

    def __init__(self, requester: sdk.Requester) -> None:
        self._requester = requester

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
        return comment(sdk.PullRequestComment(self._requester, headers, data, completed=True))

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
