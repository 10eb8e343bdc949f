"""The changes of a pull request as its reviewer sees them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from adapters.git.diffs import FileDiff, fair_share
from adapters.github.types import PullFile
from common.text.hidden import added_imitations, added_invisible, invisible_in, is_prose, names_of, with_names
from common.text.untrusted import legible

MOST_FILES = 300
MOST_CHARS = 200_000
"""The most characters of all changes together; longer ones are cut to a fair share for each file."""

EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""Git's name for a file without content."""

_CUT = "[…]"
_HUNK = re.compile(r"@@ -\S+ \+(\d{1,9})(?:,\d{1,9})? @@")


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes as a model reads them, with the names of hidden characters.

    Attributes:
        text: the whole text.
        left_out: how many files are not shown in full.
        invisible: for each file, its path and the names of invisible characters, in the path or added outside prose.
        imitations: for each file that is not prose, its path and the names of added letters that look like Latin ones.
        secrets: the paths of files with what looks like a secret in their added lines, which no model is shown.

    """

    text: str
    left_out: int = 0
    invisible: tuple[str, ...] = ()
    imitations: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def hidden(self) -> str:
        """All hidden characters that were found, on one line; "" if there are none."""
        return "; ".join((*self.invisible, *self.imitations))


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


def of_github(file: PullFile) -> FileDiff:
    """Return a file from GitHub's data, which leaves out the patch of a large or binary file."""
    says_all = not file.additions + file.deletions and (file.status == "removed" or file.sha == EMPTY_BLOB)
    return FileDiff(
        path=file.path,
        status=file.status,
        additions=file.additions,
        deletions=file.deletions,
        patch=file.patch,
        previous_path=file.previous_path,
        is_complete=bool(file.patch) or says_all,
    )


def changes_of(
    files: Sequence[FileDiff],
    count: int = 0,
    most_chars: int = MOST_CHARS,
    finds_secret: Callable[[str], bool] = lambda _: False,
) -> ShownChanges:
    """Return the changes of `files`. A file with a secret in its added lines counts as not shown in full.

    Args:
        files: the files that differ.
        count: how many files the pull request changes, if that may be more.
        most_chars: the most characters of patches to show.
        finds_secret: returns whether a text holds a secret.

    """
    shown, partly = list[str](), max(0, count - min(len(files), MOST_FILES))
    secrets = {file.path for file in files if finds_secret(_added(file.patch))}
    patches = [legible(file.patch) for file in files[:MOST_FILES]]
    share = fair_share(map(len, patches), most_chars)
    for file, patch in zip(files, patches, strict=False):
        is_whole = file.is_complete and len(patch) <= share
        told = patch if is_whole else f"{patch[:share]} {_CUT}"
        shown.append(f"{legible(_headline(file))}\n{told}".strip())
        partly += not is_whole or file.path in secrets
    partly += max(0, len(files) - MOST_FILES) if not count else 0
    invisible, imitations = tuple(_invisible(files)), tuple(_imitations(files))
    return ShownChanges("\n\n".join(shown), partly, invisible, imitations, tuple(map(with_names, sorted(secrets))))


def _added(patch: str) -> str:
    return "\n".join(line[1:] for line in patch.split("\n") if line.startswith("+"))


def _headline(file: FileDiff) -> str:
    moved = f" from {file.previous_path}" if file.previous_path else ""
    note = f", {file.note}" if file.note else ""
    return f"{file.path} ({file.status}{moved}{note}, +{file.additions} -{file.deletions})"


def _invisible(files: Sequence[FileDiff]) -> Iterator[str]:
    for file in files:
        in_path = "" if file.status == "removed" else invisible_in(file.path)
        if found := in_path + ("" if is_prose(file.path) else added_invisible(file.patch)):
            yield f"{with_names(file.path)}: {names_of(found)}"


def _imitations(files: Sequence[FileDiff]) -> Iterator[str]:
    for file in files:
        if found := "" if is_prose(file.path) else added_imitations(file.patch):
            yield f"{with_names(file.path)}: {names_of(found)}"
