"""Sends issues, comments and reviews to GitHub, each at most once.

GitHub lets nobody choose a key, so each text ends in a mark that readers do not see and that names its intent. Before
anything is written the sender looks for what stands there: by the mark, which also a killed process left behind, and
by the same title or the same words of our own, which need not be said twice. A request that got no answer may arrive
after it was repeated: what then stands there twice is closed, or as a comment deleted. A review can be neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adapters.github.rewriting import rewrite
from adapters.github.types import Comment, Issue, Repo, Review, ReviewState
from common.result import ApiResult, Ok, answering
from common.text.strings import normalized_title
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, ReviewBody
from modules.services.outbox.senders.github_looking import ChangeSender, mark, marked, meant, repo_of
from modules.services.outbox.types import Intent, Sent

WithWords = IssueBody | IssueCommentBody | ReviewBody
Written = Issue | Comment | Review

_LOOKED_AT = 100
_STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
_DUPLICATE = "Duplicate of #{number}"
"""The words by which GitHub itself marks an issue as the duplicate of another."""
_MARK = re.compile(r"(?<!\s)\s*<!-- soul:intent=[0-9a-f]* -->\s*\Z")


class GitHubSender(ChangeSender[WithWords]):
    """Sends intents of the kinds `issue`, `issue_comment` and `review`.

    A result's cid is the number or id that GitHub gave.
    """

    bodies = (IssueBody, IssueCommentBody, ReviewBody)

    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Close issues, or delete comments, that carry the mark of `intent` and are not its result."""
        return meant(await self._closed(intent))

    @answering
    async def _closed(self, intent: Intent) -> ApiResult[int]:
        body, closed = self._body(intent), 0
        for one in await self._own(body):
            if mark(intent.id) not in one.body or _sent(one).id == intent.result_id:
                continue
            if isinstance(one, Review) or (isinstance(one, Issue) and one.state == "closed"):
                continue
            (await self._close(repo_of(body), intent, one)).or_raise()
            closed += 1
        return Ok(closed)

    async def _close(self, repo: Repo, intent: Intent, one: Issue | Comment) -> ApiResult[Issue] | ApiResult[None]:
        if isinstance(one, Comment) and isinstance(intent.body, IssueCommentBody) and intent.body.line:
            return await self._github.pulls.delete_line_comment(repo, one.id)
        if isinstance(one, Comment):
            return await self._github.delete_comment(repo, one.id)
        github, told = self._github, f"{_DUPLICATE.format(number=intent.issue_number)}\n\n"
        return await rewrite(
            github,
            (repo, one.number),
            lambda: github.get_issue(repo, one.number),
            lambda issue: told + issue.body.removeprefix(told),
            lambda body: github.update_issue(repo, one.number, body=body, state="closed"),
            always=True,
        )

    async def _do(self, intent: Intent, body: WithWords) -> Sent:
        repo, text, github = repo_of(body), marked(body.body, intent.id), self._github
        done: ApiResult[Issue] | ApiResult[Comment] | ApiResult[Review]
        match body:
            case IssueBody():
                done = await github.create_issue(repo, body.title, text, labels=body.labels, assignees=body.assignees)
            case ReviewBody():
                done = await github.pulls.create_review(
                    repo, body.number, event=body.event, body=text, commit_id=body.commit_id, comments=body.comments
                )
            case IssueCommentBody(line=0):
                done = await github.create_comment(repo, body.number, text)
            case IssueCommentBody():
                done = await github.pulls.answer_line(repo, body.number, body.line, text)
        return _sent(done.or_raise())

    async def _look(self, intent: Intent, body: WithWords, *, departs: bool) -> Sent | None:
        found, mine = await self._own(body), mark(intent.id)
        arrived = next((one for one in found if mine in one.body), None)
        if arrived is None and departs:
            arrived = next((one for one in found if _same(one, body)), None)
        return _sent(arrived) if arrived else None

    async def _own(self, body: WithWords) -> Sequence[Written]:
        """Return what we wrote at the place of an act."""
        repo, github = repo_of(body), self._github
        match body:
            case IssueBody():
                found = await github.list_issues(repo, state="all", creator=github.login, limit=_LOOKED_AT)
                return [one for one in found.or_raise() if not one.is_pull_request]
            case ReviewBody():
                return [one for one in (await github.pulls.reviews(repo, body.number)).or_raise() if self._is_own(one)]
            case IssueCommentBody(line=0):
                return [one for one in (await github.list_comments(repo, body.number)).or_raise() if self._is_own(one)]
            case IssueCommentBody():
                lines = (await github.pulls.review_comments(repo, body.number)).or_raise()
                talk = (one.comment for one in lines if one.answers == body.line)
                return [one for one in talk if self._is_own(one)]

    def _is_own(self, one: Comment | Review) -> bool:
        return one.author.lower() == self._github.login.lower()


def _same(one: Written, body: WithWords) -> bool:
    if isinstance(one, Issue) and isinstance(body, IssueBody):
        return one.state == "open" and normalized_title(one.title) == normalized_title(body.title)
    if isinstance(one, Review) and isinstance(body, ReviewBody):
        elsewhere = body.commit_id and body.commit_id != one.commit_id
        return one.state == _STATES[body.event] and not elsewhere and _alike(one, body.body)
    return isinstance(one, Comment) and isinstance(body, IssueCommentBody) and _alike(one, body.body)


def _alike(one: Written, words: str) -> bool:
    return " ".join(_MARK.sub("", one.body).split()) == " ".join(words.split())


def _sent(one: Written) -> Sent:
    if isinstance(one, Issue):
        return Sent(one.html_url, "issue", str(one.number))
    return Sent(one.html_url, "comment", str(one.id))
