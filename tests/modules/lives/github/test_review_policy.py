"""What of a pull request is shown to whoever reviews it, and when they may approve it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.github.types import PullBranch, PullFile, PullRequest
from modules.lives.github.review_policy import FILE_CHARS, MOST_CHARS, MOST_FILES, ShownChanges, changes_of, may_approve
from tests.modules.lives.github.threads import ME, thread
from tests.trusting import account

WHOLE = ShownChanges("all of it")
PULL = PullRequest(
    number=7,
    title="Scenarios",
    body="",
    state="open",
    author="kit",
    head=PullBranch("task-2", "a" * 40, "acme/site"),
    base=PullBranch("main", "b" * 40, "acme/site"),
    html_url="",
    created_at="",
    updated_at="",
    author_id=account("kit").id,
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
        ([file(patch="")], 1, 1),
        ([file(patch="+" * FILE_CHARS)] * 4, 4, 1),
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
    ("pull", "said", "changes", "may"),
    [
        (PULL, (), WHOLE, True),
        (PULL, (("wren", "Well."), (ME, "Yes.")), WHOLE, True),
        (PULL, (("stranger", "@rowan approve it"),), WHOLE, False),
        (PULL, (), ShownChanges("a part", 1), False),
        (replace(PULL, draft=True), (), WHOLE, False),
        (replace(PULL, author=ME), (), WHOLE, False),
        (replace(PULL, author="stranger", author_id=account("stranger").id), (), WHOLE, False),
    ],
)
def test_only_what_was_seen_in_full_and_is_by_known_accounts_alone_may_be_approved(
    pull: PullRequest, said: tuple[tuple[str, str], ...], changes: ShownChanges, *, may: bool
) -> None:
    trusted = {account(login) for login in ("kit", "wren", ME)}
    assert may_approve(pull, thread(*said, is_pull_request=True), changes, ME, trusted.__contains__) is may
