"""Writes to a workspace on GitHub: issues, comments, states, labels, assignees, each act once under its key.

A key such as `sentinel:acme/www#12` names one act on one occasion, also in later processes. What a person undoes stays
undone: an issue that was reopened is not closed a second time for the same reason.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from adapters.github.types import Repo
from common.text.github_text import comment_body, without_mentions
from common.text.untrusted import one_line
from modules.services.outbox.github_bodies import (
    AssigneeBody,
    CommentDeletionBody,
    GitHubBody,
    IssueBody,
    IssueCommentBody,
    IssueUpdateBody,
    LabelBody,
    ReviewRequestBody,
)
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import ActStanding, ProposedAction

TITLE_CHARS = 200


def for_workspace(repo: Repo) -> dict[str, str]:
    """Return the fields that the bodies of all acts in a workspace share."""
    return {"source": "workspace", "repo": repo.full_name}


def review_requests(repo: Repo, number: int, reviewers: Iterable[str]) -> Iterator[ReviewRequestBody]:
    """Yield a separate request for each reviewer, so that one who cannot review does not block the others."""
    for login in reviewers:
        yield ReviewRequestBody(**for_workspace(repo), number=number, reviewers=(login,))


def act_key(repo: Repo, number: int, what: str) -> str:
    """Return the key of an act on an issue."""
    return f"workspace:{repo.full_name.lower()}#{number}/{what}"


@dataclass(frozen=True, slots=True)
class GitHubWriter:
    """Proposes acts; each method returns how its act stands after that.

    Attributes:
        outbox: receives the acts.
        again_after: how long an act that was refused or failed is left alone.

    """

    outbox: Outbox
    again_after: timedelta

    async def open_issue(
        self, repo: Repo, key: str, title: str, body: str, *, labels: Sequence[str] = ()
    ) -> ActStanding:
        """Open an issue; an `@` in it mentions nobody."""
        title = one_line(without_mentions(title), TITLE_CHARS)
        issue = IssueBody(**for_workspace(repo), title=title, body=comment_body(body), labels=tuple(labels))
        return await self._once(issue, key)

    async def comment(self, repo: Repo, number: int, key: str, words: str, mark: str = "") -> ActStanding:
        """Comment on an issue; an `@` in `words` mentions nobody. `mark`, invisible to readers, is added at the end."""
        text = "\n\n".join(filter(None, (comment_body(words), mark)))
        return await self._once(IssueCommentBody(**for_workspace(repo), number=number, body=text), key)

    async def delete_comment(self, repo: Repo, number: int, key: str, comment_id: int) -> ActStanding:
        """Delete a comment of the SOUL's."""
        body = CommentDeletionBody(**for_workspace(repo), number=number, comment_id=comment_id)
        return await self._once(body, key)

    async def set_state(
        self, repo: Repo, number: int, key: str, state: Literal["open", "closed"], *, last_comment: int | None = None
    ) -> ActStanding:
        """Close or reopen an issue; with `last_comment`, only if nobody else commented after it."""
        body = IssueUpdateBody(**for_workspace(repo), number=number, state=state, last_comment=last_comment)
        return await self._once(body, key)

    async def label(
        self, repo: Repo, number: int, key: str, change: tuple[Sequence[str], Sequence[str]]
    ) -> ActStanding:
        """Change the labels of an issue; `change` holds the labels to add and those to remove."""
        add, remove = map(tuple, change)
        body = LabelBody(**for_workspace(repo), number=number, add=add, remove=remove)
        return await self._once(body, key)

    async def assign(self, repo: Repo, number: int, key: str, login: str) -> ActStanding:
        """Assign an issue to one more account."""
        return await self._once(AssigneeBody(**for_workspace(repo), number=number, add=(login,)), key)

    async def _once(self, body: GitHubBody, key: str) -> ActStanding:
        return await self.outbox.do_once(ProposedAction(body, key, cause_id=key), again_after=self.again_after)
