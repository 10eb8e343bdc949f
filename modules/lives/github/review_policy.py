"""What of a pull request is shown to whoever reviews it, and whether they may approve it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.github.types import Account, PullFile, PullRequest
from modules.lives.github.types import IssueThread

MOST_FILES = 40
MOST_CHARS = 24_000
"""Of all changes together, and `FILE_CHARS` of one file."""
FILE_CHARS = 8_000

_CUT = "[…]"


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes as a model reads them; `left_out` counts the files of which not everything is in `text`."""

    text: str
    left_out: int = 0


def changes_of(files: Sequence[PullFile], count: int) -> ShownChanges:
    """Return what `files` change; `count` is how many files the pull request changes."""
    shown, chars, partly = [], 0, max(0, count - min(len(files), MOST_FILES))
    for file in files[:MOST_FILES]:
        room = min(FILE_CHARS, MOST_CHARS - chars)
        is_whole = bool(file.patch or not file.additions + file.deletions) and len(file.patch) <= room
        patch = file.patch if is_whole else f"{file.patch[: max(0, room)]} {_CUT}"
        shown.append(f"{file.path} ({file.status}, +{file.additions} -{file.deletions})\n{patch}".strip())
        chars += min(len(file.patch), max(0, room))
        partly += not is_whole
    return ShownChanges("\n\n".join(shown), partly)


def may_approve(
    pull: PullRequest, thread: IssueThread, changes: ShownChanges, login: str, is_trusted: Callable[[Account], bool]
) -> bool:
    """Return whether `login` may approve what it was shown.

    Never its own work or a draft, nothing of which it saw only a part, and not where anybody who is not trusted had a
    word in what it read.
    """
    if pull.draft or pull.author.lower() == login.lower() or changes.left_out:
        return False
    return all(
        is_trusted(one) for one in (pull.account, thread.issue.account, *(said.account for said in thread.comments))
    )
