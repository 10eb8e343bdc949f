"""Pull requests and their reviews. Every operation returns `ApiResult`; only our own bugs raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from adapters.github import convert
from adapters.github.checks import empty, wrong_branch, wrong_login, wrong_place, wrong_sha
from adapters.github.types import (
    PAGE,
    Comment,
    LineComment,
    Merge,
    MergeMethod,
    PullFile,
    PullRequest,
    QueueStanding,
    Repo,
    Review,
    ReviewComment,
    ReviewEvent,
    first,
    fit_body,
    fit_title,
    repo_path,
)
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.github.calls import Ask, Callers

_QUEUED = """query Queued($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isMergeQueueEnabled isInMergeQueue merged } }
}"""
MAX_FILES = 300
MAX_REVIEWS = 300
MAX_REVIEW_COMMENTS = 100


class PullRequests:
    """Pull requests, as one account sees them; they are closed, and comments on them made, as on issues."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def get(self, repo: Repo, number: int) -> ApiResult[PullRequest]:
        """Return one pull request, with what lists leave out (`mergeable`, the counts)."""
        what = f"read the pull request {repo.full_name}#{number}"
        return await self._caller(wrong_place(what, repo, number)).read(
            what, lambda ask: convert.pull_request(ask.pull(repo, number).complete())
        )

    async def list(
        self,
        repo: Repo,
        *,
        state: Literal["open", "closed", "all"] = "open",
        head: str = "",
        base: str = "",
        limit: int = 100,
    ) -> ApiResult[tuple[PullRequest, ...]]:
        """Return pull requests, the newest first.

        Args:
            repo: the repository.
            state: only pull requests in this state.
            head: only those from this branch, as `owner:branch`.
            base: only those into this branch.
            limit: the most to return, at least 1; each hundred costs a request.

        """
        what = f"list the pull requests of {repo.full_name}"

        def work(ask: Ask) -> tuple[PullRequest, ...]:
            found = ask.repository(repo).get_pulls(
                state=state, sort="created", direction="desc", head=ask.given(head), base=ask.given(base)
            )
            return tuple(first(limit, map(convert.pull_request, found)))

        return await self._caller(wrong_place(what, repo)).read(what, work, per_page=min(max(limit, 1), PAGE))

    async def create(
        self, repo: Repo, *, title: str, body: str, head: str, base: str, draft: bool = False
    ) -> ApiResult[PullRequest]:
        """Open a pull request from `head` (`branch`, or `owner:branch` of a fork) into `base`.

        The error is of kind `conflict` if one from that branch is already open.
        """
        what = f"open a pull request in {repo.full_name}"
        fork, _, branch = head.rpartition(":")
        wrong = wrong_place(what, repo), empty(what, "title", title), wrong_branch(what, branch, base)
        short, text = fit_title(title), fit_body(body)
        return await self._caller(*wrong, wrong_login(what, *filter(None, [fork]))).write(
            what,
            lambda ask: convert.pull_request(
                ask.repository(repo).create_pull(base, head, title=short, body=text, draft=draft)
            ),
        )

    async def merge(
        self,
        repo: Repo,
        number: int,
        *,
        method: MergeMethod = "squash",
        title: str = "",
        message: str = "",
        head_sha: str = "",
    ) -> ApiResult[Merge]:
        """Merge a pull request.

        Args:
            repo: the repository.
            number: the number of the pull request.
            method: how its commits are combined.
            title: the title of the commit; "": GitHub's own.
            message: the message of the commit; "": GitHub's own.
            head_sha: the commit that was reviewed; the error is of kind `conflict` if the branch has newer commits.

        """
        what = f"merge the pull request {repo.full_name}#{number}"
        return await self._caller(wrong_place(what, repo, number), wrong_sha(what, head_sha)).write(
            what,
            lambda ask: convert.merge(
                ask.pull(repo, number).merge(
                    commit_message=ask.given(message),
                    commit_title=ask.given(title),
                    merge_method=method,
                    sha=ask.given(head_sha),
                )
            ),
        )

    async def enqueue(self, repo: Repo, number: int, *, head_sha: str) -> ApiResult[None]:
        """Add a pull request to the merge queue of its base branch, if `head_sha` is its newest commit ("" for any).

        The error is of kind `invalid` if there is no queue, the account may not use it, or it is in it already.
        """
        what = f"let the pull request {repo.full_name}#{number} join the merge queue"

        def work(ask: Ask) -> None:
            named = {"pullRequestId": ask.pull(repo, number).complete().node_id}
            named |= {"expectedHeadOid": head_sha} if head_sha else {}
            ask.requester.graphql_named_mutation("enqueuePullRequest", named, "mergeQueueEntry { id }")

        return await self._caller(wrong_place(what, repo, number), wrong_sha(what, head_sha)).write(what, work)

    async def queue(self, repo: Repo, number: int) -> ApiResult[QueueStanding]:
        """Return whether its base branch has a merge queue and it is in it.

        `none`: there is no queue; `out`: it is not in it; `in`: it is in it, or was merged by now.
        """
        what = f"read whether the pull request {repo.full_name}#{number} waits in a merge queue"

        def work(ask: Ask) -> QueueStanding:
            named = {"owner": repo.owner, "name": repo.name, "number": number}
            _, answer = ask.requester.graphql_query(_QUEUED, named)
            pull = answer["data"]["repository"]["pullRequest"]
            if pull["isInMergeQueue"] or pull["merged"]:
                return "in"
            return "out" if pull["isMergeQueueEnabled"] else "none"

        return await self._caller(wrong_place(what, repo, number)).read(what, work)

    async def update_branch(self, repo: Repo, number: int, *, head_sha: str) -> ApiResult[None]:
        """Ask GitHub to merge the base into the branch of a pull request; it does so soon after the answer.

        The error is of kind `invalid` with status 422 if the two conflict, or if `head_sha` is no longer the newest
        commit of the branch.
        """
        what = f"update the branch of the pull request {repo.full_name}#{number}"
        wrong = wrong_place(what, repo, number), empty(what, "commit", head_sha), wrong_sha(what, head_sha)
        # NOTE(self): PyGithub's own method returns False for any answer but 202 and does not say why.
        url, body = f"{repo_path(repo)}/pulls/{number}/update-branch", {"expected_head_sha": head_sha}
        return await self._caller(*wrong).write(what, lambda ask: ask.do("PUT", url, body))

    async def files(self, repo: Repo, number: int, *, limit: int = MAX_FILES) -> ApiResult[tuple[PullFile, ...]]:
        """Return the files that it changes, with their patches."""
        what = f"read the files of the pull request {repo.full_name}#{number}"
        return await self._caller(wrong_place(what, repo, number)).read(
            what, lambda ask: tuple(map(convert.pull_file, first(limit, ask.pull(repo, number).get_files())))
        )

    async def changed(self, repo: Repo, base: str, head: str) -> ApiResult[tuple[PullFile, ...]]:
        """Return the files that changed from the merge base of the two commits up to `head`, 300 at most."""
        what = f"compare two commits of {repo.full_name}"
        wrong = wrong_place(what, repo), empty(what, "commit", base and head), wrong_sha(what, base, head)
        return await self._caller(*wrong).read(
            what, lambda ask: tuple(map(convert.pull_file, ask.repository(repo).compare(base, head).files))
        )

    async def reviews(self, repo: Repo, number: int, *, limit: int = MAX_REVIEWS) -> ApiResult[tuple[Review, ...]]:
        """Return its newest reviews, oldest first."""
        what = f"read the reviews of {repo.full_name}#{number}"

        def work(ask: Ask) -> tuple[Review, ...]:
            found = ask.pull(repo, number).get_reviews()
            read = tuple(first(limit + 1, found))
            # NOTE(self): GitHub lists them oldest first, and going backwards costs a request more.
            kept = read if len(read) <= limit else tuple(first(limit, found.reversed))[::-1]
            return tuple(map(convert.review, kept))

        return await self._caller(wrong_place(what, repo, number)).read(what, work)

    async def review_comments(
        self, repo: Repo, number: int, *, limit: int = MAX_REVIEW_COMMENTS
    ) -> ApiResult[tuple[ReviewComment, ...]]:
        """Return the newest comments on lines in its reviews, oldest first."""
        what = f"read what the reviews of {repo.full_name}#{number} say of lines"

        def work(ask: Ask) -> tuple[ReviewComment, ...]:
            found = ask.pull(repo, number).get_review_comments(sort="created", direction="desc")
            return tuple(map(convert.review_comment, first(limit, found)))[::-1]

        return await self._caller(wrong_place(what, repo, number)).read(what, work)

    async def answer_line(self, repo: Repo, number: int, comment_id: int, body: str) -> ApiResult[Comment]:
        """Reply in the discussion of a line that `comment_id` began; the body is cut to GitHub's limit."""
        what = f"answer a comment on a line of {repo.full_name}#{number}"
        url, told = f"{repo_path(repo)}/pulls/{number}/comments/{comment_id}/replies", {"body": fit_body(body)}
        return await self._caller(
            wrong_place(what, repo, number), wrong_place(what, repo, comment_id), empty(what, "text", body)
        ).write(what, lambda ask: convert.comment(ask.told_line_comment(ask.send("POST", url, told))))

    async def delete_line_comment(self, repo: Repo, comment_id: int) -> ApiResult[None]:
        """Delete a comment on a line; it is a success if it is already gone."""
        what = f"delete a comment on a line in {repo.full_name}"
        url = f"{repo_path(repo)}/pulls/comments/{comment_id}"
        done = await self._caller(wrong_place(what, repo, comment_id)).write(what, lambda ask: ask.do("DELETE", url))
        return Ok(None) if isinstance(done, Err) and done.kind == "not_found" else done

    async def create_review(
        self,
        repo: Repo,
        number: int,
        *,
        event: ReviewEvent,
        body: str = "",
        commit_id: str = "",
        comments: Sequence[LineComment] = (),
    ) -> ApiResult[Review]:
        """Review a pull request. Only an approval may have no text; nobody can approve their own.

        The lines of `comments` must be in its changes. The error is of kind `invalid` with status 422 if it is merged,
        closed or our own.
        """
        what = f"review {repo.full_name}#{number}"
        wrong = wrong_place(what, repo, number), None if event == "APPROVE" else empty(what, "text", body)
        said = [{"path": one.path, "line": one.line, "side": "RIGHT", "body": fit_body(one.body)} for one in comments]
        return await self._caller(*wrong, wrong_sha(what, commit_id)).write(
            what,
            lambda ask: convert.review(
                ask.pull(repo, number).create_review(
                    commit=ask.given(ask.commit(commit_id) if commit_id else None),
                    body=ask.given(fit_body(body)),
                    event=event,
                    comments=cast("Any", said),
                )
            ),
        )

    async def request_reviewers(self, repo: Repo, number: int, logins: Sequence[str]) -> ApiResult[PullRequest]:
        """Request a review from accounts; return the resulting pull request.

        The error is of kind `invalid` with status 422 if one of them cannot be asked.
        """
        what = f"request reviews of {repo.full_name}#{number}"
        wrong = wrong_place(what, repo, number), empty(what, "list of reviewers", "".join(logins))
        url, body = f"{repo_path(repo)}/pulls/{number}/requested_reviewers", {"reviewers": [*logins]}
        return await self._caller(*wrong, wrong_login(what, *logins)).write(
            what, lambda ask: convert.pull_request(ask.told_pull(ask.send("POST", url, body)))
        )
