"""What of a pull request is shown to whoever reviews it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.github.types import PullFile

MOST_FILES = 40
MOST_CHARS = 24_000
"""Of all changes together, and `FILE_CHARS` of one file."""
FILE_CHARS = 8_000

_CUT = "[…]"
_HUNK = re.compile(r"@@ -\S+ \+(\d{1,9})(?:,\d{1,9})? @@")


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes as a model reads them; `left_out` counts the files of which not everything is in `text`."""

    text: str
    left_out: int = 0


def new_lines(patch: str) -> frozenset[int]:
    """Return the numbers of the lines of the new file that a patch shows."""
    found, number = set[int](), 0
    for line in patch.split("\n"):
        if head := _HUNK.match(line):
            number = int(head[1])
        elif number and line.startswith((" ", "+")):
            found.add(number)
            number += 1
    return frozenset(found)


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
