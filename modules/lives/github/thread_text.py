"""A thread as a model reads it: bounded, without what GitHub hides from readers, oldest comment first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.github.types import Comment, ReviewComment
from common.text.markdown import without_html_comments
from common.text.strings import both_ends
from common.text.untrusted import legible, one_line
from modules.lives.github.policy import mentions
from modules.lives.github.types import IssueThread

MOST_COMMENTS = 15
_MOST_CALLS = 3

_BODY_CHARS = 6_000
_COMMENT_CHARS = 2_000
_PATH_CHARS = 300
_HUNK_CHARS = 3_000
_CUT = "[…]"


@dataclass(frozen=True, slots=True)
class ThreadText:
    """The parts of a thread: its first text and the newest comments.

    `hidden` counts the earlier comments that are left out. `line` shows the file and the changes that the comments are
    about; "" if they are not about a line.
    """

    opening: str
    comments: str
    hidden: int = 0
    line: str = ""


def format_thread_for_context(thread: IssueThread, login: str, max_comments: int = MOST_COMMENTS) -> ThreadText:
    """Return a thread with its newest comments, and those that wait for an answer of ours and mention us.

    A line of ours begins with YOU.
    """
    issue, newest = thread.issue, thread.comments[-max_comments:]
    calls = [one for one in thread.later_than(login) if one not in newest and mentions(one.body, login)]
    shown = (*calls[-_MOST_CALLS:], *newest)
    kind = "pull request" if issue.is_pull_request else "issue"
    labels = f", labels: {', '.join(issue.labels)}" if issue.labels else ""
    heading = f"{issue.title}\n({kind} #{issue.number}, {issue.state}, by @{issue.author}{labels})"
    return ThreadText(
        opening=f"{heading}\n\n{_fitted(issue.body, _BODY_CHARS)}",
        comments=_lines(shown, login, _COMMENT_CHARS),
        hidden=len(thread.comments) - len(shown),
        line=_line(thread.line) if thread.line else "",
    )


def _line(on: ReviewComment) -> str:
    """Return the file and the end of the changes, which is the part that the comments are about."""
    hunk = legible(on.hunk)
    shown = hunk if len(hunk) <= _HUNK_CHARS else f"{_CUT} {hunk[-_HUNK_CHARS:]}"
    return f"{one_line(on.path, _PATH_CHARS)}\n{shown}"


def _lines(comments: Sequence[Comment], login: str, most: int) -> str:
    return "\n\n".join(
        f"{'YOU' if one.author.lower() == login.lower() else f'@{one.author}'}: {_fitted(one.body, most)}"
        for one in comments
    )


def _fitted(text: str, most: int) -> str:
    return both_ends(without_html_comments(text).strip(), most)
