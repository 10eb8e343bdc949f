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

EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""Git's name for a file without content."""

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
        is_whole = bool(file.patch or _says_all_by_its_name(file)) and len(file.patch) <= room
        patch = file.patch if is_whole else f"{file.patch[: max(0, room)]} {_CUT}"
        moved = f" from {file.previous_path}" if file.previous_path else ""
        shown.append(f"{file.path} ({file.status}{moved}, +{file.additions} -{file.deletions})\n{patch}".strip())
        chars += min(len(file.patch), max(0, room))
        partly += not is_whole
    return ShownChanges("\n\n".join(shown), partly)


def _says_all_by_its_name(file: PullFile) -> bool:
    """Whether there is nothing to show. A file without a patch may hold anything: Git was told to call it no text."""
    return not file.additions + file.deletions and (file.status == "removed" or file.sha == EMPTY_BLOB)
