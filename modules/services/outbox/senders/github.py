"""Sends issues, comments and reviews to GitHub, each at most once.

GitHub lets nobody choose a key, so each text ends in a mark that readers do not see and that names its intent. Before
anything is written the sender looks for what stands there: by the mark, which also a killed process left behind, and
by the same title or the same words of our own, which need not be said twice. A request that got no answer may arrive
after it was repeated: what then stands there twice is closed, or as a comment deleted. A review can be neither.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adapters.github.rewriting import rewrite
from adapters.github.types import Comment, Issue, Repo, Review, ReviewState
from common.result import ApiResult, Err, Ok, answering
from common.text.strings import normalized_title
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, OnGitHub, ReviewBody
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.types import Intent, Sent

WithWords = IssueBody | IssueCommentBody | ReviewBody
Written = Issue | Comment | Review

_LOOKED_AT = 100
_UNREADABLE = Err("it names no repository and words for GitHub", "invalid")
_FORBIDDEN = 403
_STATES: dict[str, ReviewState] = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}
_DUPLICATE = "Duplicate of #{number}"
"""The words by which GitHub itself marks an issue as the duplicate of another."""
_MARK = re.compile(r"(?<!\s)\s*<!-- soul:intent=[0-9a-f]* -->\s*\Z")


def marked(body: str, intent_id: str) -> str:
    """`body` with the unseen mark of its intent."""
    return f"{body}\n\n{mark(intent_id)}" if body else mark(intent_id)


def mark(intent_id: str) -> str:
    """The mark of an intent."""
    return f"<!-- soul:intent={intent_id} -->"


class GitHubSender:
    """Sends intents of the kinds `issue`, `issue_comment` and `review`.

    A result's cid is the number or id that GitHub gave.
    """

    def __init__(self, identity: RepositoryIdentity) -> None:
        self._github = identity.github
        self._identity = identity

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Write it, unless it stands there already."""
        if not self._github.configured:
            return Err("there is no account on GitHub to write as", "auth")
        if not isinstance(body := intent.body, WithWords):
            return _UNREADABLE
        async with self._github.burst():
            if refusal := await self._identity.write_refusal(repo_of(body)):
                return meant(refusal)
            standing = await self._standing(intent, same_words=True)
            if isinstance(standing, Err) or standing.data is not None:
                return standing if isinstance(standing, Err) else Ok(standing.data or Sent())
            return await self._write(intent, body)

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether an earlier try arrived."""
        return await self._standing(intent, same_words=False)

    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Close issues, or delete comments, that carry the mark of `intent` and are not its result."""
        if not isinstance(intent.body, WithWords):
            return _UNREADABLE
        found = await self._own(intent)
        if isinstance(found, Err):
            return meant(found)
        closed, repo = 0, repo_of(intent.body)
        for one in found.data:
            if mark(intent.id) not in one.body or _sent(one).id == intent.result_id:
                continue
            if isinstance(one, Review) or (isinstance(one, Issue) and one.state == "closed"):
                continue
            done = await self._close(repo, intent, one)
            if isinstance(done, Err):
                return meant(done)
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

    async def _write(self, intent: Intent, body: WithWords) -> ApiResult[Sent]:
        repo, text = repo_of(body), marked(body.body, intent.id)
        if isinstance(body, IssueBody):
            opened = await self._github.create_issue(
                repo, body.title, text, labels=body.labels, assignees=body.assignees
            )
            return meant(opened) if isinstance(opened, Err) else Ok(_sent(opened.data))
        if isinstance(body, ReviewBody):
            judged = await self._github.pulls.create_review(
                repo, body.number, event=body.event, body=text, commit_id=body.commit_id, comments=body.comments
            )
            return meant(judged) if isinstance(judged, Err) else Ok(_sent(judged.data))
        said = (
            await self._github.pulls.answer_line(repo, body.number, body.line, text)
            if body.line
            else await self._github.create_comment(repo, body.number, text)
        )
        return meant(said) if isinstance(said, Err) else Ok(_sent(said.data))

    async def _standing(self, intent: Intent, *, same_words: bool) -> ApiResult[Sent | None]:
        found = await self._own(intent)
        if isinstance(found, Err):
            return meant(found)
        mine = mark(intent.id)
        arrived = next((one for one in found.data if mine in one.body), None)
        if arrived is None and same_words:
            arrived = next((one for one in found.data if _same(one, intent)), None)
        return Ok(_sent(arrived) if arrived else None)

    async def _own(self, intent: Intent) -> ApiResult[Sequence[Written]]:
        match intent.body:
            case IssueBody() as body:
                return await self._issues(body)
            case IssueCommentBody() as body:
                return await self._comments(body)
            case ReviewBody() as body:
                return await self._reviews(body)
            case _:
                return _UNREADABLE

    async def _issues(self, body: IssueBody) -> ApiResult[Sequence[Written]]:
        found = await self._github.list_issues(repo_of(body), state="all", creator=self._github.login, limit=_LOOKED_AT)
        return found if isinstance(found, Err) else Ok([one for one in found.data if not one.is_pull_request])

    @answering
    async def _comments(self, body: IssueCommentBody) -> ApiResult[Sequence[Written]]:
        if body.line:
            lines = (await self._github.pulls.review_comments(repo_of(body), body.number)).or_raise()
            talk = (one.comment for one in lines if one.answers == body.line)
            return Ok([one for one in talk if self._is_own(one)])
        found = (await self._github.list_comments(repo_of(body), body.number)).or_raise()
        return Ok([one for one in found if self._is_own(one)])

    async def _reviews(self, body: ReviewBody) -> ApiResult[Sequence[Written]]:
        found = await self._github.pulls.reviews(repo_of(body), body.number)
        return found if isinstance(found, Err) else Ok([one for one in found.data if self._is_own(one)])

    def _is_own(self, one: Comment | Review) -> bool:
        return one.author.lower() == self._github.login.lower()


def repo_of(body: OnGitHub) -> Repo:
    """The repository that an act is for."""
    owner, _, name = body.repo.partition("/")
    return Repo(owner, name)


def _same(one: Written, intent: Intent) -> bool:
    body = intent.body
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


def meant(error: Err) -> Err:
    """What GitHub's refusals mean for one act: an account that may not write there need not wait for a day.

    What changed in between does not change back. An account that GitHub has closed does not end the life of a SOUL,
    which has other things to do.
    """
    forbidden = error.kind == "auth" and error.status == _FORBIDDEN
    return replace(error, kind="invalid") if forbidden or error.kind in {"fatal", "conflict"} else error
