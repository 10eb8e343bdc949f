"""What is said of single lines of a pull request."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.github.types import Comment


@dataclass(frozen=True, slots=True)
class ReviewComment:
    """What is said of one line, 0 where it is about a whole file; `hunk` shows the changes down to that line.

    `answers` is the id of the comment that begins the talk about the line, 0 for that comment itself.
    """

    review_id: int
    path: str
    line: int
    hunk: str
    comment: Comment
    answers: int = 0

    @property
    def body(self) -> str:
        """What it says."""
        return self.comment.body

    @property
    def talk(self) -> int:
        """The id of the comment that begins the talk."""
        return self.answers or self.comment.id
