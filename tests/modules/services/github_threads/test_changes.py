"""What of a pull request is shown to whoever reviews it."""

from __future__ import annotations

import pytest

from adapters.github.types import PullFile
from modules.services.github_threads.changes import (
    EMPTY_BLOB,
    FILE_CHARS,
    MOST_CHARS,
    MOST_FILES,
    changes_of,
    new_lines,
)


def file(path: str = "SCENARIOS.md", patch: str = "@@ -0,0 +1 @@\n+A gate") -> PullFile:
    return PullFile(path, "added", 1, 0, patch)


def test_changes_are_shown_with_their_files() -> None:
    shown = changes_of([file(), file("README.md", "+It")], 2)
    assert shown.text == "SCENARIOS.md (added, +1 -0)\n@@ -0,0 +1 @@\n+A gate\n\nREADME.md (added, +1 -0)\n+It"
    assert shown.left_out == 0


@pytest.mark.parametrize(
    ("files", "count", "left_out"),
    [
        ([file(patch="+" * (FILE_CHARS + 1))], 1, 1),
        ([file(patch="+" * FILE_CHARS)] * 4, 4, 1),
        ([PullFile("beds.py", "modified", 0, 0, sha="f" * 40)], 1, 1),
        ([PullFile("new.py", "renamed", 0, 0, previous_path="old.py", sha="f" * 40)], 1, 1),
        ([PullFile("beds/__init__.py", "added", 0, 0, sha=EMPTY_BLOB)], 1, 0),
        ([PullFile("beds.png", "removed", 0, 0, sha="f" * 40)], 1, 0),
        ([file()] * MOST_FILES, 300, 300 - MOST_FILES),
        ([file(patch="+" * 10**6)] * 100, 100, 100),
    ],
)
def test_what_is_not_shown_in_full_is_counted_and_the_rest_is_bounded(
    files: list[PullFile], count: int, left_out: int
) -> None:
    shown = changes_of(files, count)
    assert shown.left_out == left_out
    assert len(shown.text) < MOST_CHARS + 100 * MOST_FILES


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        ("@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n\\ No newline at end of file", {1, 2, 3}),
        ("@@ -1 +1 @@ def a():\n-a\n+b\n@@ -8,0 +9,2 @@\n+c\n+d", {1, 9, 10}),
        ("@@ -1,2 +0,0 @@\n-a\n-b", set()),
    ],
)
def test_the_lines_of_the_new_file_are_counted_by_hunk(patch: str, lines: set[int]) -> None:
    assert new_lines(patch) == lines
