"""A thread waits to be handled once for each source that led to it and each time, in the order of handling.

Proves also what a reviewer is shown of a pull request.
"""

from dataclasses import dataclass

import pytest

from adapters.git.diffs import FileDiff
from adapters.github.types import PullFile
from common.clock import FakeClock
from common.text.untrusted import clean
from modules.runtime.database.database import Database
from modules.services.github_threads import (
    EMPTY_BLOB,
    MOST_CHARS,
    MOST_FILES,
    THREAD,
    NewThread,
    ThreadInbox,
    WaitingThread,
    changes_of,
    leads_to,
    new_lines,
    of_github,
    thread_of,
)
from modules.services.work.table import WorkTable
from modules.services.work.types import WorkItem
from tests.modules.lives.github.threads import at


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


@dataclass
class Inbox:
    threads: ThreadInbox
    work: WorkTable
    clock: FakeClock

    async def waiting(self) -> list[WaitingThread]:
        return [thread_of(one) for one in await self.rows()]

    async def rows(self) -> list[WorkItem]:
        return await self.work.due([THREAD])

    async def settle(self) -> None:
        for one in await self.rows():
            await self.work.settle(one, "done", "commented")


@pytest.fixture
def inbox(database: Database) -> Inbox:
    clock = FakeClock()
    work = WorkTable(database, clock)
    return Inbox(ThreadInbox(work, clock, 0.0), work, clock)


async def test_a_thread_waits_until_it_is_settled_and_waits_again_for_what_is_newer(inbox: Inbox) -> None:
    first = NewThread("acme/site", 7, "issue", "github_notification", at(1), reason="mention", notice="9")
    assert await inbox.threads.take_in([first, first]) == 1
    (earlier,) = await inbox.rows()
    await inbox.settle()
    assert await inbox.threads.take_in([first]) == 0
    assert await inbox.waiting() == []
    await inbox.clock.advance(1)
    newer = NewThread("Acme/site", 7, "issue", "github_notification", at(2), reason="comment", notice="9")
    assert await inbox.threads.take_in([newer]) == 1
    await inbox.work.settle(earlier, "done", "of the earlier one")
    (again,) = await inbox.waiting()
    assert (again.at, again.reason, again.key) == (at(2), "comment", "acme/site#7")
    assert again.cause_id != earlier.cause_id
    by_owner = NewThread("acme/site", 7, "issue", "bluesky_url_owner", at(1), uri="at://post")
    assert await inbox.threads.take_in([by_owner]) == 1
    assert [one.source for one in await inbox.waiting()] == ["bluesky_url_owner", "github_notification"]
    database = inbox.work.database
    assert await database.run(lambda connection: leads_to(connection, "ACME/site", 7))
    assert not await database.run(lambda connection: leads_to(connection, "acme/site", 70))


async def test_what_came_in_within_the_same_second_is_looked_at_once_more(inbox: Inbox) -> None:
    now = f"{inbox.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    told = NewThread("acme/site", 7, "issue", "github_notification", now, reason="mention", notice="9")
    for seconds, new in ((0.5, 1), (0.5, 0), (2, 1), (60, 0)):
        await inbox.clock.advance(seconds)
        assert await inbox.threads.take_in([told]) == new
        await inbox.settle()


async def test_what_the_owner_shows_us_comes_first_then_mentions_then_the_rest(inbox: Inbox) -> None:
    for new in (
        NewThread("acme/site", 1, "issue", "bluesky_url", at(1), uri="at://did:plc:ada/post/1"),
        NewThread("acme/site", 2, "issue", "bluesky_url", at(1), uri="at://did:plc:ada/post/2"),
        NewThread("acme/site", 3, "issue", "github_notification", at(1), reason="comment"),
        NewThread("acme/site", 4, "issue", "github_notification", at(1), reason="mention"),
        NewThread("acme/site", 5, "issue", "bluesky_url_owner", at(2), uri="at://did:plc:owner/post/1"),
    ):
        await inbox.threads.take_in([new])
    assert [one.number for one in await inbox.waiting()] == [5, 4, 1, 3, 2]
