"""Pull requests and their reviews. Every operation answers `ApiResult`; only our own bugs raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from adapters.github.checks import empty, wrong_branch, wrong_login, wrong_place
from adapters.github.types import (
    PAGE,
    Comment,
    IssueState,
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
    fit_body,
    fit_title,
    is_sha,
)
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.github.calls import Caller

MAX_FILES = 300
MAX_REVIEWS = 300
MAX_REVIEW_COMMENTS = 100


class PullRequests:
    """Pull requests, as one account sees them; what it says of them goes by the comments of issues."""

    def __init__(self, caller: Callable[[], Caller]) -> None:
        self._caller = caller

    async def get(self, repo: Repo, number: int) -> ApiResult[PullRequest]:
        """One pull request, with what lists leave out (`mergeable`, the counts)."""
        what = f"read the pull request {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller().read(what, lambda ask: ask.pulls.get(repo, number))

    async def list(
        self,
        repo: Repo,
        *,
        state: Literal["open", "closed", "all"] = "open",
        head: str = "",
        base: str = "",
        sort: Literal["created", "updated", "popularity", "long-running"] = "created",
        direction: Literal["asc", "desc"] = "desc",
        limit: int = 100,
    ) -> ApiResult[tuple[PullRequest, ...]]:
        """Pull requests, the newest first.

        Args:
            repo: where.
            state: of the pull requests.
            head: only those from this branch, as `owner:branch`.
            base: only those into this branch.
            sort: by what.
            direction: of the order.
            limit: the most to return, at least 1; each hundred costs a request.

        """
        what = f"list the pull requests of {repo.full_name}"
        if wrong := wrong_place(what, repo):
            return wrong
        return await self._caller().read(
            what,
            lambda ask: ask.pulls.list(
                repo,
                state=state,
                head=head,
                base=base,
                sort=sort,
                direction=direction,
                limit=limit,
            ),
            per_page=min(max(limit, 1), PAGE),
        )

    async def create(
        self, repo: Repo, *, title: str, body: str, head: str, base: str, draft: bool = False
    ) -> ApiResult[PullRequest]:
        """Open a pull request from `head` (`branch`, or `owner:branch` of a fork) into `base`.

        The error is of kind `conflict` where one from that branch is open already.
        """
        what = f"open a pull request in {repo.full_name}"
        fork, _, branch = head.rpartition(":")
        wrong = wrong_place(what, repo) or empty(what, "title", title) or wrong_branch(what, branch, base)
        if wrong := wrong or (wrong_login(what, fork) if fork else None):
            return wrong
        short, text = fit_title(title), fit_body(body)
        return await self._caller().write(
            what, lambda ask: ask.pulls.create(repo, title=short, body=text, head=head, base=base, draft=draft)
        )

    async def update(
        self, repo: Repo, number: int, *, title: str = "", body: str = "", state: IssueState | None = None
    ) -> ApiResult[PullRequest]:
        """Change what is given. An empty title or body is left as it stands."""
        what = f"update the pull request {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        short, text = fit_title(title), fit_body(body) if body.strip() else ""
        if not (short or text or state):
            return Err(f"could not {what}: there is nothing to change", kind="invalid")
        return await self._caller().write(
            what, lambda ask: ask.pulls.update(repo, number, title=short, body=text, state=state)
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
        """Merge it.

        Args:
            repo: where.
            number: of the pull request.
            method: how its commits become one line.
            title: of the commit; GitHub's own where it is "".
            message: of the commit; GitHub's own where it is "".
            head_sha: the commit that was reviewed; the error is of kind `conflict` where the branch has moved on.

        """
        what = f"merge the pull request {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        if head_sha and not is_sha(head_sha):
            return Err(f"could not {what}: no commit can be called that", kind="invalid")
        return await self._caller().write(
            what,
            lambda ask: ask.pulls.merge(repo, number, method=method, title=title, message=message, sha=head_sha),
        )

    async def enqueue(self, repo: Repo, number: int, *, head_sha: str) -> ApiResult[None]:
        """Let it join the merge queue of its base branch, if `head_sha` is its newest commit ("" for any).

        The error is of kind `invalid` where there is no queue, the account may not join it, or it waits there already.
        """
        what = f"let the pull request {repo.full_name}#{number} join the merge queue"
        if wrong := wrong_place(what, repo, number):
            return wrong
        if head_sha and not is_sha(head_sha):
            return Err(f"could not {what}: no commit can be called that", kind="invalid")
        return await self._caller().write(what, lambda ask: ask.pulls.enqueue(repo, number, sha=head_sha))

    async def queue(self, repo: Repo, number: int) -> ApiResult[QueueStanding]:
        """Return whether its base branch has a merge queue, and it waits there.

        `none`: there is no queue; `out`: it does not wait in it; `in`: it waits there, or was merged by now.
        """
        what = f"read whether the pull request {repo.full_name}#{number} waits in a merge queue"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller().read(what, lambda ask: ask.pulls.queue(repo, number))

    async def update_branch(self, repo: Repo, number: int, *, head_sha: str) -> ApiResult[None]:
        """Let GitHub merge the base into the branch of a pull request; it does so soon after it answered.

        The error is of kind `invalid` with status 422 where the two conflict, and where `head_sha` is not the newest
        commit of the branch any more.
        """
        what = f"update the branch of the pull request {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        if not is_sha(head_sha):
            return Err(f"could not {what}: no commit can be called that", kind="invalid")
        return await self._caller().write(what, lambda ask: ask.pulls.update_branch(repo, number, sha=head_sha))

    async def files(self, repo: Repo, number: int, *, limit: int = MAX_FILES) -> ApiResult[tuple[PullFile, ...]]:
        """The files that it changes, with their patches."""
        what = f"read the files of the pull request {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller().read(what, lambda ask: ask.pulls.files(repo, number, limit=limit))

    async def changed(self, repo: Repo, base: str, head: str) -> ApiResult[tuple[PullFile, ...]]:
        """The files that changed from where the commit `head` left the commit `base` on, 300 at most."""
        what = f"compare two commits of {repo.full_name}"
        if wrong := wrong_place(what, repo):
            return wrong
        if not (is_sha(base) and is_sha(head)):
            return Err(f"could not {what}: no commit can be called that", kind="invalid")
        return await self._caller().read(what, lambda ask: ask.pulls.changed(repo, base, head))

    async def reviews(self, repo: Repo, number: int, *, limit: int = MAX_REVIEWS) -> ApiResult[tuple[Review, ...]]:
        """Its reviews, oldest first."""
        what = f"read the reviews of {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller().read(what, lambda ask: ask.pulls.reviews(repo, number, limit=limit))

    async def review_comments(
        self, repo: Repo, number: int, *, limit: int = MAX_REVIEW_COMMENTS
    ) -> ApiResult[tuple[ReviewComment, ...]]:
        """The newest of what its reviews say of lines, oldest first."""
        what = f"read what the reviews of {repo.full_name}#{number} say of lines"
        if wrong := wrong_place(what, repo, number):
            return wrong
        return await self._caller().read(what, lambda ask: ask.pulls.review_comments(repo, number, limit=limit))

    async def answer_line(self, repo: Repo, number: int, comment_id: int, body: str) -> ApiResult[Comment]:
        """Answer in the talk about a line that `comment_id` begins; the body is cut to what GitHub takes."""
        what = f"answer a comment on a line of {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or wrong_place(what, repo, comment_id) or empty(what, "text", body):
            return wrong
        text = fit_body(body)
        return await self._caller().write(what, lambda ask: ask.pulls.answer_line(repo, number, comment_id, text))

    async def delete_line_comment(self, repo: Repo, comment_id: int) -> ApiResult[None]:
        """Delete a comment on a line; one that is gone already is a success."""
        what = f"delete a comment on a line in {repo.full_name}"
        if wrong := wrong_place(what, repo, comment_id):
            return wrong
        done = await self._caller().write(what, lambda ask: ask.pulls.delete_line_comment(repo, comment_id))
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
        """Review it. Only an approval may be without words; nobody can approve what is their own.

        The lines of `comments` must stand in its changes.

        The error is of kind `invalid` with status 422 where it is merged, closed or our own.
        """
        what = f"review {repo.full_name}#{number}"
        if wrong := wrong_place(what, repo, number) or (None if event == "APPROVE" else empty(what, "text", body)):
            return wrong
        if commit_id and not is_sha(commit_id):
            return Err(f"could not {what}: no commit can be called that", kind="invalid")
        text, said = fit_body(body), tuple(replace(one, body=fit_body(one.body)) for one in comments)
        return await self._caller().write(
            what,
            lambda ask: ask.pulls.create_review(
                repo, number, event=event, body=text, commit_id=commit_id, comments=said
            ),
        )

    async def request_reviewers(self, repo: Repo, number: int, logins: Sequence[str]) -> ApiResult[PullRequest]:
        """Ask accounts for a review; the pull request as it stands then.

        The error is of kind `invalid` with status 422 where one of them cannot be asked.
        """
        what = f"request reviews of {repo.full_name}#{number}"
        wrong = wrong_place(what, repo, number) or empty(what, "list of reviewers", "".join(logins))
        if wrong := wrong or wrong_login(what, *logins):
            return wrong
        return await self._caller().write(what, lambda ask: ask.pulls.request_reviewers(repo, number, tuple(logins)))
