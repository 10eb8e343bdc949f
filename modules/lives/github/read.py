"""Reads a thread: its comments, the reviews that mention us, and the talks about lines in which we are called."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.client import GitHub
from adapters.github.line_comments import ReviewComment
from adapters.github.types import Comment, Issue, Review
from common.result import ApiResult, Err, Ok, answering
from modules.lives.github.policy import calls_on_lines, comment_of, mentions
from modules.lives.github.types import IssueThread
from modules.services.github_threads.threads import NewThread, WaitingThread


@dataclass(frozen=True, slots=True)
class FoundThread:
    """A thread as it stands, and the talks about its lines in which somebody calls us."""

    thread: IssueThread
    lines: tuple[NewThread, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads threads of GitHub."""

    github: GitHub

    @answering
    async def read(self, waiting: WaitingThread) -> ApiResult[FoundThread]:
        """Return the thread, or the talk about a line, that waits."""
        async with self.github.burst():
            issue = (await self.github.get_issue(waiting.place, waiting.number)).or_raise()
            if waiting.line:
                return Ok(await self._talk(waiting, issue))
            comments = (await self.github.list_comments(waiting.place, waiting.number)).or_raise()
            if not issue.is_pull_request:
                return Ok(FoundThread(IssueThread(issue, comments)))
            return Ok(await self._with_reviews(waiting, issue, comments))

    async def _talk(self, waiting: WaitingThread, issue: Issue) -> FoundThread:
        found = (await self.github.pulls.review_comments(waiting.place, waiting.number)).or_raise()
        talk = [one for one in found if waiting.line in {one.comment.id, one.answers}]
        if not talk:
            Err("the comment on the line is gone", "not_found").or_raise()
        return FoundThread(IssueThread(issue, tuple(one.comment for one in talk), talk[0]))

    async def _with_reviews(self, waiting: WaitingThread, issue: Issue, comments: tuple[Comment, ...]) -> FoundThread:
        reviews = (await self.github.pulls.reviews(waiting.place, waiting.number)).or_raise()
        lines = (await self.github.pulls.review_comments(waiting.place, waiting.number)).or_raise()
        login = self.github.login
        answered = _answered_by_a_round(issue, reviews, login)
        calling = (one for one in reviews if one.id not in answered and one.author.lower() != login.lower())
        said = [*comments, *(comment_of(one) for one in calling if mentions(one.body, login))]
        thread = IssueThread(issue, tuple(sorted(said, key=lambda one: one.created_at)))
        open_lines = [one for one in lines if one.review_id not in answered]
        return FoundThread(thread, tuple(_new(waiting, one) for one in calls_on_lines(open_lines, login)))


def _answered_by_a_round(issue: Issue, reviews: tuple[Review, ...], login: str) -> set[int]:
    """Return the reviews of our own pull request that ask for changes: a further round of the work answers these."""
    if issue.author.lower() != login.lower():
        return set()
    return {one.id for one in reviews if one.state == "CHANGES_REQUESTED"}


def _new(waiting: WaitingThread, newest: ReviewComment) -> NewThread:
    return NewThread(
        repo=waiting.repo,
        number=waiting.number,
        kind="pull",
        source="github_notification",
        at=newest.comment.created_at,
        reason="mention",
        line=newest.talk,
    )
