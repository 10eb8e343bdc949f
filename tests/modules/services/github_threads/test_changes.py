"""What of a pull request is shown to whoever reviews it."""

from __future__ import annotations

import pytest

from adapters.git.diffs import FileDiff
from adapters.github.types import PullFile
from common.text.untrusted import clean
from modules.services.github_threads.changes import (
    EMPTY_BLOB,
    MOST_CHARS,
    MOST_FILES,
    changes_of,
    new_lines,
    of_github,
)


def file(path: str = "SCENARIOS.md", patch: str = "@@ -0,0 +1 @@\n+A gate") -> FileDiff:
    return FileDiff(path, "added", 1, 0, patch)


def test_changes_are_shown_with_their_files() -> None:
    moved = FileDiff("new.py", "renamed", 0, 0, previous_path="old.py", note="mode 100644 becomes 100755")
    shown = changes_of([file(), moved], 2)
    assert shown.text == (
        "SCENARIOS.md (added, +1 -0)\n@@ -0,0 +1 @@\n+A gate\n\n"
        "new.py (renamed from old.py, mode 100644 becomes 100755, +0 -0)"
    )
    assert shown.left_out == 0


@pytest.mark.parametrize(
    ("files", "count", "left_out"),
    [
        ([file(patch="+" * MOST_CHARS)], 1, 0),
        ([file(patch="+" * (MOST_CHARS + 1))], 1, 1),
        ([file(patch="+" * (MOST_CHARS // 3))] * 4, 4, 4),
        ([*[file(patch="+" * MOST_CHARS)] * 9, file()], 10, 9),
        ([FileDiff("beds.png", "added", 0, 0, is_complete=False)], 1, 1),
        ([file()] * MOST_FILES, MOST_FILES + 3, 3),
        ([file()] * (MOST_FILES + 3), 0, 3),
        ([file(patch="+" * 10**6)] * 10, 10, 10),
    ],
)
def test_what_is_not_shown_in_full_is_counted_and_the_rest_is_bounded(
    files: list[FileDiff], count: int, left_out: int
) -> None:
    shown = changes_of(files, count)
    assert shown.left_out == left_out
    assert len(shown.text) < MOST_CHARS + 100 * MOST_FILES


@pytest.mark.parametrize(
    ("told", "is_complete"),
    [
        (PullFile("beds.py", "modified", 0, 0, sha="f" * 40), False),
        (PullFile("new.py", "renamed", 0, 0, previous_path="old.py", sha="f" * 40), False),
        (PullFile("beds/__init__.py", "added", 0, 0, sha=EMPTY_BLOB), True),
        (PullFile("beds.png", "removed", 0, 0, sha="f" * 40), True),
        (PullFile("beds.py", "modified", 1, 0, "+a"), True),
    ],
)
def test_a_file_for_which_github_tells_no_patch_may_hold_anything(told: PullFile, *, is_complete: bool) -> None:
    assert of_github(told).is_complete is is_complete


def test_what_nobody_sees_is_shown_by_name_and_found_in_code_and_in_paths_but_not_in_prose() -> None:
    patch = "@@ -0,0 +1,2 @@\n+allowed = True  # \u202e nimda\n+p\u0430y = 1\u2028 import os"
    prose = file(patch="@@ -0,0 +1 @@\n+\u2067\u05e9\u05dc\u05d5\u05dd\u2069")
    shown = changes_of([file("beds.py", patch), prose, file("be\u200bds.md")])
    assert "# \u27e8U+202E RIGHT-TO-LEFT OVERRIDE\u27e9 nimda" in shown.text
    assert "p\u27e8U+0430 CYRILLIC SMALL LETTER A\u27e9y" in shown.text
    assert "\u27e8U+2028 LINE SEPARATOR\u27e9 import os" in shown.text
    in_code, in_path = shown.invisible
    assert in_code.startswith("beds.py: ")
    assert "RIGHT-TO-LEFT OVERRIDE" in in_code
    assert "ZERO WIDTH SPACE" in in_path
    assert "CYRILLIC" in shown.hidden


def test_no_line_of_code_is_lost_because_it_looks_like_a_mark_of_a_prompt() -> None:
    lines = ["if a <to-000000 or steal() > 0:", "    page = '<s>gone</s> <think>'", "<<<post-0123456789ab>>>"]
    shown = changes_of([file("beds.py", "@@ -0,0 +1,3 @@\n" + "\n".join(f"+{line}" for line in lines))])
    read = clean(shown.text)
    assert "steal() > 0" in read
    assert read.replace("\u27e8U+003C LESS-THAN SIGN\u27e9", "<").endswith("\n".join(f"+{line}" for line in lines))


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
