"""What is remembered of a thread on GitHub: one reducer, and a file that survives crashes and upgrades."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.lives.github.engagement import (
    FILE,
    OLD_AFTER,
    OVER_AFTER,
    Commented,
    Engagement,
    GitHubState,
    LeftThread,
    Reentered,
    ThreadRead,
    Tracked,
    after,
    is_outlived,
)
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.github_threads.threads import WaitingThread
from tests.modules.lives.github.threads import ME, at, thread

WAITING = WaitingThread("acme/site", 7, "issue", "bluesky_url", at(1))
KEY, URL = "acme/site#7", "https://github.com/acme/site/issues/7"
NOW = FakeClock().now()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    yield database
    await database.close()


def known(**changes: object) -> Engagement:
    record = after(None, Tracked(WAITING, URL), NOW)
    assert record
    return record.replace(**changes)


def test_what_leads_to_a_thread_begins_a_record_and_leads_to_it_again() -> None:
    record = known()
    assert (record.owner, record.repo, record.number, record.state) == ("acme", "site", 7, "new")
    assert record.source == "bluesky_url"
    later = NOW + timedelta(hours=1)
    assert after(record, Tracked(WAITING, URL), later) == record.replace(last_checked=later)
    assert after(None, Commented(), later) is None


def test_the_state_follows_what_was_read_and_said() -> None:
    read = after(known(), ThreadRead(thread(("kit", f"@{ME}")), ME, is_to_be_answered=True), NOW)
    assert read
    assert (read.state, read.our_comment_count, read.our_comment_id) == ("active", 0, None)
    said = after(read, Commented(), NOW)
    assert said
    assert (said.state, said.last_commented_at) == ("awaiting_response", NOW)
    again = after(said, ThreadRead(thread((ME, "a"), (ME, "b")), ME, is_to_be_answered=False), NOW)
    assert again
    assert (again.state, again.our_comment_count, again.our_comment_id) == ("awaiting_response", 2, 102)
    closed = after(again, ThreadRead(thread((ME, "a"), state="closed"), ME, is_to_be_answered=False), NOW)
    assert closed
    assert closed.state == "closed"


def test_a_thread_that_we_left_stays_so_until_it_is_entered_again_and_only_others_are_counted() -> None:
    left = after(known(), LeftThread("it went in circles"), NOW)
    assert left
    assert (left.state, left.conclusion_reason, left.concluded_at) == ("concluded", "it went in circles", NOW)
    read = after(left, ThreadRead(thread(("kit", "hm")), ME, is_to_be_answered=False), NOW)
    assert read
    assert read.state == "concluded"
    for by_owner, count in ((True, 0), (False, 1)):
        back = after(read, Reentered(by_owner=by_owner), NOW)
        assert back
        assert (back.state, back.concluded_at, back.reengagement_count) == ("active", None, count)


@pytest.mark.parametrize(
    ("state", "age", "gone"),
    [
        ("concluded", OVER_AFTER, False),
        ("concluded", OVER_AFTER + timedelta(seconds=1), True),
        ("closed", OVER_AFTER + timedelta(seconds=1), True),
        ("active", OVER_AFTER + timedelta(days=1), False),
        ("awaiting_response", OLD_AFTER + timedelta(seconds=1), True),
    ],
)
def test_what_is_over_goes_after_a_month_and_anything_after_two(state: str, age: timedelta, *, gone: bool) -> None:
    assert is_outlived(known(state=state, last_checked=NOW - age), NOW) is gone


async def test_the_file_is_stamped_and_read_again_and_keeps_what_another_version_wrote(
    tmp_path: Path, database: Database
) -> None:
    clock = FakeClock()
    state = GitHubState(tmp_path, database, clock)
    state.note(KEY, Tracked(WAITING, URL))
    written = json.loads((tmp_path / FILE).read_text())
    assert written["_memoryVersion"]
    assert written["conversations"][KEY]["reengagementCount"] == 0
    written |= {"_memoryVersion": "0.0.1", "later": 1}
    (tmp_path / FILE).write_text(json.dumps(written))
    again = GitHubState(tmp_path, database, clock)
    assert again.notice == ""
    record = again.known(KEY)
    assert record
    assert record.source == "bluesky_url"
    again.note(KEY, Commented())
    assert json.loads((tmp_path / FILE).read_text())["later"] == 1
    await clock.advance(OLD_AFTER.total_seconds() + 1)
    again.cleanup_old_conversations()
    assert GitHubState(tmp_path, database, clock).known(KEY) is None
