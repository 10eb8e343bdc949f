"""Threads on GitHub for tests of the pure rules."""

from typing import Literal

from adapters.github.types import Comment, Issue
from modules.lives.github.types import IssueThread
from tests.trusting import account

ME = "rowan"


def at(minute: int) -> str:
    return f"2026-11-01T10:{minute:02d}:00Z"


def thread(
    *said: tuple[str, str],
    author: str = "kit",
    body: str = "It stops at midnight.",
    state: Literal["open", "closed"] = "open",
    labels: tuple[str, ...] = (),
    is_pull_request: bool = False,
) -> IssueThread:
    """Return a thread whose comments are `said` (login, text), a minute apart."""
    issue = Issue(
        number=7,
        title="The clock stops",
        body=body,
        state=state,
        author=author,
        labels=labels,
        assignees=(),
        html_url="https://github.com/acme/site/issues/7",
        created_at=at(0),
        updated_at=at(0),
        is_pull_request=is_pull_request,
        author_id=account(author).id,
    )
    comments = [
        Comment(100 + n, text, who, f"{issue.html_url}#issuecomment-{100 + n}", at(n), at(n), account(who).id)
        for n, (who, text) in enumerate(said, start=1)
    ]
    return IssueThread(issue, tuple(comments))
