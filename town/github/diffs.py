"""What `git diff` writes, read into values. Pure."""

from __future__ import annotations

import re
from typing import Literal

from town.github.git_values import NO_COMMIT, ChangedFile, ChangeKind

_SECTION = re.compile(r"^(?=diff --git )", re.MULTILINE)
_KINDS: dict[str, ChangeKind] = {"A": "added", "D": "removed", "R": "renamed", "C": "added"}


def changed_files(listed: str, diff: str) -> list[ChangedFile]:
    """The changed files of `git diff --raw -z`, each with its part of the same difference's `git diff`."""
    sections = [section for section in _SECTION.split(diff) if section]
    files = []
    for row, section in zip(_rows(listed), sections, strict=True):
        _, _, old, new, status, path, previous = row
        patch = section[section.index("\n@@ ") + 1 :].rstrip("\n") if "\n@@ " in section else ""
        files.append(
            ChangedFile(
                path,
                _KINDS.get(status, "modified"),
                old if new == NO_COMMIT else new,
                _count(patch, "+"),
                _count(patch, "-"),
                patch,
                previous,
            )
        )
    return files


def _rows(listed: str) -> list[tuple[str, str, str, str, str, str, str]]:
    """Modes, names of contents, kind of change, path, and former path of each changed file."""
    parts = iter(listed.split("\0"))
    rows = []
    for about in filter(None, parts):
        old_mode, new_mode, old, new, status = about.removeprefix(":").split(" ")
        path = next(parts)
        path, previous = (next(parts), path) if status[0] in "RC" else (path, "")
        rows.append((old_mode, new_mode, old, new, status[0], path, previous))
    return rows


def _count(patch: str, sign: Literal["+", "-"]) -> int:
    return sum(line.startswith(sign) for line in patch.split("\n"))
